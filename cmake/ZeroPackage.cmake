# What an installation holds besides programs and library (ZeroInstall.cmake), and the Debian package (scripts/package).
#
# Component programs: bin/zero_launch, which is scripts/train, bin/zero_to_jsonl, and completion for three shells. documentation: docs,
# licences and the examples. runtime: the three libraries of LibTorch that programs load, and its licence.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # cpack would build the tests
set(_documents ${CMAKE_INSTALL_DATAROOTDIR}/doc/zero-train)

install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/train DESTINATION lib/zero/scripts COMPONENT programs)
install(FILES ${PROJECT_SOURCE_DIR}/scripts/common.sh DESTINATION lib/zero/scripts COMPONENT programs)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/cmake/packaging/zero_launch DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/to_jsonl DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME zero_to_jsonl COMPONENT programs)
if(NOT CMAKE_CROSSCOMPILING)  # a program of another processor says nothing here
  foreach(_program ${_programs})
    install(CODE "set(program $<TARGET_FILE:${_program}>)\ninclude(${PROJECT_SOURCE_DIR}/cmake/packaging/install_completion.cmake)" COMPONENT programs)
  endforeach()
endif()

install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md
  ${PROJECT_SOURCE_DIR}/cmake/packaging/copyright DESTINATION ${_documents} COMPONENT documentation)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${_documents} COMPONENT documentation)
# Small images leave out share/doc, and the examples are more than documentation.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zero COMPONENT documentation PATTERN cpp EXCLUDE PATTERN digits EXCLUDE)

if(LibTorch_CUDA)  # NVIDIA's libraries are gigabytes, and have licences of their own
  return()
endif()
file(GLOB _runtime ${LIBTORCH_ROOT}/lib/libgomp*.so*)
install(FILES ${LIBTORCH_ROOT}/lib/libtorch_cpu.so ${LIBTORCH_ROOT}/lib/libc10.so ${_runtime} DESTINATION ${_libtorch}/lib COMPONENT runtime EXCLUDE_FROM_ALL)
file(GLOB _licences ${LIBTORCH_ROOT}/../torch-*.dist-info/licenses)
foreach(_folder ${_licences})
  install(DIRECTORY ${_folder}/ DESTINATION ${_documents}/libtorch COMPONENT runtime EXCLUDE_FROM_ALL)
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME zero-train)
set(CPACK_PACKAGE_VENDOR "the authors of zero")
set(CPACK_PACKAGE_CONTACT "the authors of zero <nobody@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "training of language models, sharded over processes")
set(CPACK_PACKAGE_DESCRIPTION "zero_train trains and fine-tunes language models on several processes, with ZeRO stages\n 0 to 3. LibTorch is part of the package, in /usr/lib/zero.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL programs documentation runtime)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)  # a tenth of xz's time
# The libraries that programs load are found by dpkg-shlibdeps. These are started, not loaded.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${LIBTORCH_ROOT}/lib)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "openmpi-bin, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openssh-client, python3")
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packaging/own_libraries.cmake)
include(CPack)
