# Runs before cpack packs: programs find LibTorch inside the package alone, and no path of the build machine stays.
file(GLOB programs ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/bin/* ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/bin/*)
foreach(program ${programs})
  if(NOT IS_DIRECTORY ${program} AND NOT program MATCHES "zero_launch$")
    file(RPATH_SET FILE ${program} NEW_RPATH "$ORIGIN/../lib/zero/libtorch/lib")
  endif()
endforeach()
