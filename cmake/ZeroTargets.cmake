# How the project's rooms become targets. A room is a static library of every .cpp in its folder.

# One precompiled header for every target that sees LibTorch.
add_library(zero_torch_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/torch_pch.cpp)
target_link_libraries(zero_torch_pch PUBLIC LibTorch::LibTorch)
target_include_directories(zero_torch_pch PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
target_precompile_headers(zero_torch_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/torch_pch.h)

# zero_room(NAME SOURCES... LINK targets...): library zero_NAME. SOURCES default to the folder's .cpp files without programs (zero_*.cpp).
function(zero_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  if(NOT ROOM_SOURCES)
    file(GLOB ROOM_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
    list(FILTER ROOM_SOURCES EXCLUDE REGEX "/zero_[a-z]+\\.cpp$|_absent\\.cpp$")
  endif()
  if(NOT ROOM_SOURCES)
    add_library(zero_${name} INTERFACE)
    target_link_libraries(zero_${name} INTERFACE ${ROOM_LINK} LibTorch::LibTorch)
    return()
  endif()
  add_library(zero_${name} STATIC ${ROOM_SOURCES})
  target_include_directories(zero_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/zero>)
  target_link_libraries(zero_${name} PUBLIC ${ROOM_LINK} LibTorch::LibTorch PRIVATE ${ROOM_PRIVATE_LINK})
  target_precompile_headers(zero_${name} REUSE_FROM zero_torch_pch)
  set_property(GLOBAL APPEND PROPERTY ZERO_ROOMS zero_${name})
endfunction()

# zero_program(NAME SOURCE LINK targets...): an executable in bin/.
function(zero_program name source)
  cmake_parse_arguments(PROGRAM "" "" "LINK" ${ARGN})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${PROGRAM_LINK})
  target_precompile_headers(${name} REUSE_FROM zero_torch_pch)
  set_property(GLOBAL APPEND PROPERTY ZERO_PROGRAMS ${name})
endfunction()

# What programs say of themselves (cmake/version.h). Git is asked at every build.
find_package(Git QUIET)
add_custom_target(zero_commit BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/zero_commit.h
  COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D GIT=${GIT_EXECUTABLE} -D HEADER=${PROJECT_BINARY_DIR}/generated/zero_commit.h
  -P ${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake VERBATIM)
function(zero_add_version)
  add_library(zero_version STATIC ${PROJECT_SOURCE_DIR}/cmake/version.cpp)
  add_dependencies(zero_version zero_commit)
  target_include_directories(zero_version PRIVATE ${PROJECT_BINARY_DIR}/generated)
  target_compile_definitions(zero_version PRIVATE ZERO_VERSION="${PROJECT_VERSION}" ZERO_HAS_CUDA=$<BOOL:${ZERO_CUDA}>)
  target_link_libraries(zero_version PUBLIC zero_comm)
endfunction()
