# CUDA for the project: nvcc, architectures, cudart, cuBLASLt and NCCL, and the kernels of a room. Nothing is detected
# from a GPU or a driver, because the build machine has none.

# Runs before project languages are enabled. Takes an installed toolkit's nvcc 13.0, or the one that
# scripts/setup_cuda fetched.
macro(zero_enable_cuda)
  get_filename_component(_site ${LIBTORCH_ROOT}/.. ABSOLUTE)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(ZERO_NVCC nvcc HINTS ${_site}/nvidia/cu13/bin NO_DEFAULT_PATH)
    find_program(ZERO_NVCC nvcc)
    if(NOT ZERO_NVCC)
      message(FATAL_ERROR "no nvcc: scripts/setup cuda fetches one, or set CMAKE_CUDA_COMPILER")
    endif()
    set(CMAKE_CUDA_COMPILER ${ZERO_NVCC})
  endif()
  set(_architectures "80-real;90-real;100-real;100-virtual")
  if(DEFINED ENV{CUDAARCHS})  # CMake's own variable
    set(_architectures "$ENV{CUDAARCHS}")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES "${_architectures}" CACHE STRING "GPUs that the kernels are compiled for")
  # The runtime is LibTorch's shared one, because two runtimes in a process do not see each other's errors. It is linked
  # below by its path: a compiler from wheels knows no folder to find it in.
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  set(CMAKE_CUDA_STANDARD 17)  # the newest that CMake 3.25 knows a flag of nvcc for
  enable_language(CUDA)

  # The same libcudart.so.13, libcublasLt.so.13 and libnccl.so.2 that LibTorch loads, from its wheels or from the system.
  find_library(CUDART_LIBRARY NAMES cudart libcudart.so.13 HINTS ${_site}/nvidia/cu13/lib)
  find_path(CUDART_INCLUDE_DIR crt/host_defines.h HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} NO_DEFAULT_PATH)
  find_library(CUBLAS_LT_LIBRARY NAMES cublasLt libcublasLt.so.13 HINTS ${_site}/nvidia/cu13/lib)
  find_path(CUBLAS_LT_INCLUDE_DIR cublasLt.h HINTS ${_site}/nvidia/cu13/include ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${NCCL_ROOT}/lib $ENV{NCCL_ROOT}/lib ${_site}/nvidia/nccl/lib)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${NCCL_ROOT}/include $ENV{NCCL_ROOT}/include ${_site}/nvidia/nccl/include NO_CMAKE_PATH)
  foreach(part CUDART CUBLAS_LT NCCL)
    if(NOT ${part}_LIBRARY OR NOT ${part}_INCLUDE_DIR)
      message(FATAL_ERROR "${part} was not found; scripts/setup cuda fetches it, or set ${part}_LIBRARY and ${part}_INCLUDE_DIR")
    endif()
  endforeach()
  add_library(zero_cudart INTERFACE IMPORTED)
  target_include_directories(zero_cudart SYSTEM INTERFACE ${CUDART_INCLUDE_DIR})
  # LibTorch's CUDA headers include those of cuSPARSE and others, which a bare toolkit lacks.
  if(EXISTS ${_site}/nvidia/cu13/include)
    target_include_directories(zero_cudart SYSTEM INTERFACE ${_site}/nvidia/cu13/include)
  endif()
  target_link_libraries(zero_cudart INTERFACE ${CUDART_LIBRARY})
  add_library(zero_cublas_lt INTERFACE IMPORTED)
  target_include_directories(zero_cublas_lt SYSTEM INTERFACE ${CUBLAS_LT_INCLUDE_DIR})
  target_link_libraries(zero_cublas_lt INTERFACE ${CUBLAS_LT_LIBRARY})
  # Programs name NCCL themselves. Otherwise LibTorch's RPATH to its own would beat LD_LIBRARY_PATH.
  add_library(zero_nccl INTERFACE IMPORTED)
  target_include_directories(zero_nccl SYSTEM INTERFACE ${NCCL_INCLUDE_DIR})
  get_filename_component(_nccl_folder ${NCCL_LIBRARY} DIRECTORY)
  target_link_libraries(zero_nccl INTERFACE -Wl,--push-state,--no-as-needed,${NCCL_LIBRARY},--pop-state,-rpath,${_nccl_folder})
  message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}, NCCL ${NCCL_LIBRARY}")
endmacro()

# zero_cuda_part(room folders...): adds *.cu (which include no LibTorch) and *.cpp of the folders; without CUDA their
# absent.cpp alone.
function(zero_cuda_part room)
  foreach(folder ${ARGN})
    if(NOT ZERO_CUDA)
      target_sources(room_${room} PRIVATE ${folder}/absent.cpp)
      continue()
    endif()
    file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cu)
    file(GLOB callers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
    list(FILTER callers EXCLUDE REGEX "/absent\\.cpp$")
    target_sources(room_${room} PRIVATE ${callers})
    list(APPEND all_kernels ${kernels})
  endforeach()
  if(ZERO_CUDA)
    add_library(room_${room}_cuda OBJECT ${all_kernels})
    target_include_directories(room_${room}_cuda PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_options(room_${room}_cuda PRIVATE -lineinfo --expt-relaxed-constexpr)
    target_sources(room_${room} PRIVATE $<TARGET_OBJECTS:room_${room}_cuda>)
    target_link_libraries(room_${room} PRIVATE zero_cudart)
  endif()
endfunction()
