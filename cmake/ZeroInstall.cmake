# cmake --install build/release --prefix P puts the library, its headers and the programs below P. find_package(zero)
# then gives zero::zero. It links what sharding needs and nothing of language models. Its headers are those of
# include/zero alone, so none can hide a user's header.
#
# Programs and package look for LibTorch in P/lib/zero/libtorch first, then where this build found it. Before both, the
# package looks in LIBTORCH_ROOT, and programs in LD_LIBRARY_PATH. `--component libtorch` copies LibTorch to the first
# of these (the CPU build; 0.5 GB). P then needs nothing of the build.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set_target_properties(room_library PROPERTIES EXPORT_NAME zero)
add_library(zero::zero ALIAS room_library)
set(_rooms room_library room_checkpoint room_modules room_core room_optim room_models room_offload room_comm room_base)
install(TARGETS ${_rooms} EXPORT zero_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/zero COMPONENT library)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/zero/library/include/zero DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library FILES_MATCHING PATTERN "*.h")

set(_libtorch ${CMAKE_INSTALL_LIBDIR}/zero/libtorch)
set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/zero)
install(EXPORT zero_targets NAMESPACE zero:: FILE zeroTargets.cmake DESTINATION ${_package} COMPONENT library)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/zeroConfig.cmake.in ${PROJECT_BINARY_DIR}/zeroConfig.cmake INSTALL_DESTINATION ${_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zeroConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/zeroConfig.cmake ${PROJECT_BINARY_DIR}/zeroConfigVersion.cmake ${PROJECT_SOURCE_DIR}/cmake/FindLibTorch.cmake
  DESTINATION ${_package} COMPONENT library)

get_property(_programs GLOBAL PROPERTY ZERO_PROGRAMS)
if(_programs)
  file(RELATIVE_PATH _from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/zero/libtorch/lib)
  set(_rpath "$ORIGIN/${_from_bin}" ${LIBTORCH_ROOT}/lib)  # the link path alone leaves out what lies in the project's folder
  if(ZERO_CUDA)
    get_filename_component(_cudart_folder ${CUDART_LIBRARY} DIRECTORY)
    list(APPEND _rpath ${_cudart_folder})
  endif()
  set_target_properties(${_programs} PROPERTIES INSTALL_RPATH "${_rpath}" INSTALL_RPATH_USE_LINK_PATH ON)
  add_custom_target(programs DEPENDS ${_programs})  # all that is installed into bin/
  install(TARGETS ${_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
endif()
if(NOT LibTorch_CUDA)
  install(DIRECTORY ${LIBTORCH_ROOT}/lib ${LIBTORCH_ROOT}/include DESTINATION ${_libtorch} COMPONENT libtorch EXCLUDE_FROM_ALL PATTERN "libtorch_python*" EXCLUDE)
  install(FILES ${LIBTORCH_ROOT}/version.py ${LIBTORCH_ROOT}/build-version DESTINATION ${_libtorch} COMPONENT libtorch EXCLUDE_FROM_ALL OPTIONAL)
endif()
