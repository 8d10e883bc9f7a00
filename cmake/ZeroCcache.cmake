# Compiles through ccache if it is installed. All clones share compiled files. Paths inside the project therefore count
# by their place in it. The precompiled header counts by its ingredients, since gcc writes other bytes each time.
find_program(CCACHE ccache)
if(NOT CCACHE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  function(zero_describe_pch)
  endfunction()
  return()
endif()
set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
  CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess> $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)

# zero_describe_pch(TARGET HEADER): writes the checksum that stands for TARGET's precompiled header: of compiler, flags,
# LibTorch and HEADER.
function(zero_describe_pch target header)
  file(READ ${header} includes)
  get_directory_property(options COMPILE_OPTIONS)
  string(REPLACE ${PROJECT_SOURCE_DIR} "" options "${options}")
  string(SHA256 sum "${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_STANDARD} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELEASE} ${options}
    ${LibTorch_VERSION} ${LibTorch_CUDA} ${LibTorch_WITHOUT_OPENMP} ${includes}")
  file(WRITE ${PROJECT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum "${sum}")
endfunction()
