# Runs before cpack packs: programs find LibTorch inside the package alone, and no path of the build machine stays.
file(GLOB programs ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/bin/* ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/bin/*)
foreach(program ${programs})
  if(IS_DIRECTORY ${program})
    continue()
  endif()
  file(READ ${program} magic LIMIT 4 HEX)
  if(magic STREQUAL 7f454c46)  # ELF; scripts have no runtime path
    file(RPATH_SET FILE ${program} NEW_RPATH "$ORIGIN/../lib/zero/libtorch/lib")
  endif()
endforeach()
