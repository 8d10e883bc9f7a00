# Turns the project's rooms into targets. A room is a static library of every .cpp in its folder and the folders below.
# It is room_NAME in the build, libzero_NAME.a, and zero::NAME for those who link it.

# One precompiled header for every target that includes LibTorch.
add_library(zero_torch_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/torch_pch.cpp)
target_link_libraries(zero_torch_pch PUBLIC LibTorch::LibTorch)
target_include_directories(zero_torch_pch PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
target_precompile_headers(zero_torch_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/torch_pch.h)
zero_describe_pch(zero_torch_pch ${PROJECT_SOURCE_DIR}/cmake/torch_pch.h)
# The same with torch/torch.h, for targets that use torch::nn::Module. zero_train needs none of it.
add_library(zero_torch_nn_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/torch_pch.cpp)
target_link_libraries(zero_torch_nn_pch PUBLIC LibTorch::LibTorch)
target_include_directories(zero_torch_nn_pch PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
target_precompile_headers(zero_torch_nn_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/torch_nn_pch.h)
zero_describe_pch(zero_torch_nn_pch ${PROJECT_SOURCE_DIR}/cmake/torch_nn_pch.h)

# zero_use_pch(TARGET TORCH_NN): reuses one of the two.
function(zero_use_pch target torch_nn)
  if(torch_nn)
    target_precompile_headers(${target} REUSE_FROM zero_torch_nn_pch)
  else()
    target_precompile_headers(${target} REUSE_FROM zero_torch_pch)
  endif()
endfunction()

# zero_room(NAME [WITHOUT_TORCH | TORCH_NN] [ONLY regex] [EXCLUDE regex] [APART regex] LINK targets... PRIVATE_LINK targets...)
# Leaves out a program's main (zero_*.cpp), a backend that is absent (absent.cpp, *_absent.cpp) and sources for CUDA (cuda/).
# TORCH_NN: its sources include torch/torch.h.
function(zero_room name)
  cmake_parse_arguments(ROOM "WITHOUT_TORCH;TORCH_NN" "ONLY;EXCLUDE;APART" "LINK;PRIVATE_LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/zero_[a-z]+\\.cpp$|absent\\.cpp$|/cuda/")
  if(ROOM_ONLY)
    list(FILTER sources INCLUDE REGEX "${ROOM_ONLY}")
  endif()
  if(ROOM_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${ROOM_EXCLUDE}")
  endif()
  add_library(room_${name} STATIC ${sources})
  set_target_properties(room_${name} PROPERTIES OUTPUT_NAME zero_${name} EXPORT_NAME ${name})
  target_include_directories(room_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(room_${name} PUBLIC ${ROOM_LINK} PRIVATE ${ROOM_PRIVATE_LINK})
  if(NOT ROOM_WITHOUT_TORCH)
    target_link_libraries(room_${name} PUBLIC LibTorch::LibTorch)
    zero_use_pch(room_${name} ${ROOM_TORCH_NN})
  endif()
  zero_unity(room_${name} APART "${ROOM_APART}")
endfunction()

# zero_program(NAME SOURCE [WITHOUT_TORCH] LINK targets...): an executable in bin/, which refuses a processor without AVX2.
function(zero_program name source)
  cmake_parse_arguments(PROGRAM "WITHOUT_TORCH" "" "LINK" ${ARGN})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE zero_required_processor ${PROGRAM_LINK})
  if(NOT PROGRAM_WITHOUT_TORCH)
    target_precompile_headers(${name} REUSE_FROM zero_torch_pch)
  endif()
  set_property(GLOBAL APPEND PROPERTY ZERO_PROGRAMS ${name})
endfunction()

# Version and commit that programs print (cmake/version.h), and with zero_version the libraries. Every build asks git.
find_package(Git QUIET)
add_custom_target(zero_commit BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/zero_commit.h
  COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D GIT=${GIT_EXECUTABLE} -D HEADER=${PROJECT_BINARY_DIR}/generated/zero_commit.h
  -P ${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake VERBATIM)
function(zero_add_version)
  add_library(zero_own_version STATIC ${PROJECT_SOURCE_DIR}/cmake/version.cpp)
  add_dependencies(zero_own_version zero_commit)
  target_include_directories(zero_own_version PUBLIC ${PROJECT_SOURCE_DIR} PRIVATE ${PROJECT_BINARY_DIR}/generated)
  target_compile_definitions(zero_own_version PRIVATE ZERO_VERSION="${PROJECT_VERSION}")
  add_library(zero_version STATIC ${PROJECT_SOURCE_DIR}/cmake/version_text.cpp)
  target_compile_definitions(zero_version PRIVATE ZERO_HAS_CUDA=$<BOOL:${ZERO_CUDA}>)
  target_link_libraries(zero_version PUBLIC zero_own_version room_comm)
endfunction()
