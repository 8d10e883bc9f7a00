# Finds LibTorch inside an unpacked torch wheel (CPU or CUDA build) or a LibTorch zip. It does not use
# TorchConfig.cmake, which stops on a CUDA build if no CUDA toolkit is installed.
#
# Input:   LIBTORCH_ROOT   folder that holds include/ and lib/
#          LibTorch_WITHOUT_OPENMP   TRUE to compile without OpenMP: at::parallel_for then stays on the thread that calls it
# Output:  target LibTorch::LibTorch, LibTorch_VERSION, LibTorch_CUDA (TRUE if the build has libtorch_cuda.so)
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h HINTS ${LIBTORCH_ROOT}/include NO_DEFAULT_PATH)
foreach(lib torch torch_cpu c10)
  find_library(LibTorch_${lib}_LIBRARY ${lib} HINTS ${LIBTORCH_ROOT}/lib NO_DEFAULT_PATH)
endforeach()
find_library(LibTorch_torch_cuda_LIBRARY torch_cuda HINTS ${LIBTORCH_ROOT}/lib NO_DEFAULT_PATH)
find_library(LibTorch_c10_cuda_LIBRARY c10_cuda HINTS ${LIBTORCH_ROOT}/lib NO_DEFAULT_PATH)
mark_as_advanced(LibTorch_torch_cuda_LIBRARY LibTorch_c10_cuda_LIBRARY)

set(LibTorch_CUDA FALSE)
if(LibTorch_torch_cuda_LIBRARY)
  set(LibTorch_CUDA TRUE)
endif()
if(EXISTS ${LIBTORCH_ROOT}/version.py)
  file(STRINGS ${LIBTORCH_ROOT}/version.py _version REGEX "^__version__")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" LibTorch_VERSION "${_version}")
elseif(EXISTS ${LIBTORCH_ROOT}/build-version)
  file(READ ${LIBTORCH_ROOT}/build-version _version)
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" LibTorch_VERSION "${_version}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_INCLUDE_DIR LibTorch_torch_LIBRARY LibTorch_torch_cpu_LIBRARY LibTorch_c10_LIBRARY
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "set LIBTORCH_ROOT to the torch/ folder of an unpacked wheel (scripts/setup makes one in .deps/)")

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  find_package(Threads REQUIRED)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  # SYSTEM keeps LibTorch's warnings out; the folders come after those of the project's other dependencies.
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
    ${LibTorch_INCLUDE_DIR} ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include)
  target_link_libraries(LibTorch::LibTorch INTERFACE
    ${LibTorch_torch_cpu_LIBRARY} ${LibTorch_c10_LIBRARY} Threads::Threads)
  # at::parallel_for is a template. It has threads only if the file that uses it is compiled with OpenMP. The OpenMP
  # runtime is LibTorch's own, under whatever name it comes: a second one would not know of at::set_num_threads.
  if(NOT LibTorch_WITHOUT_OPENMP)
    find_package(OpenMP REQUIRED COMPONENTS CXX)
    target_compile_options(LibTorch::LibTorch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:SHELL:${OpenMP_CXX_FLAGS}>)
    file(GLOB _runtime ${LIBTORCH_ROOT}/lib/libgomp*.so*)
    if(NOT _runtime)
      set(_runtime OpenMP::OpenMP_CXX)
    endif()
    target_link_libraries(LibTorch::LibTorch INTERFACE ${_runtime})
  endif()
  if(LibTorch_CUDA)
    # Its kernels register themselves when the library is loaded. Nothing refers to a symbol of it.
    target_link_libraries(LibTorch::LibTorch INTERFACE
      -Wl,--push-state,--no-as-needed,${LibTorch_torch_cuda_LIBRARY},--pop-state ${LibTorch_c10_cuda_LIBRARY})
  endif()
endif()
