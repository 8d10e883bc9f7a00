# Compiles several sources of a folder as one. A source by itself spends two seconds on the templates of
# LibTorch's headers.
option(ZERO_UNITY "Compile the sources of a folder together" ON)

# zero_unity(TARGET [APART regex]): joins TARGET's sources by folder, about eight at a time. A new file changes one
# group. CMake leaves out sources with flags of their own. This function leaves out those that Highway compiles for
# several processors. It also leaves out those that match APART, because their neighbours use the same names.
function(zero_unity target)
  cmake_parse_arguments(UNITY "" "APART" "" ${ARGN})
  if(NOT ZERO_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(folders "")
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE)
    if(NOT source MATCHES "\\.cpp$" OR (UNITY_APART AND path MATCHES "${UNITY_APART}"))
      continue()
    endif()
    file(STRINGS ${path} vectors REGEX "hwy/foreach_target\\.h|HWY_TARGET_INCLUDE" LIMIT_COUNT 1)
    if(vectors)
      continue()
    endif()
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${path})  # without the clone's place, so that ccache finds another's
    get_filename_component(folder ${folder} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    list(APPEND folders ${folder})
    list(APPEND sources_of_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    list(LENGTH sources_of_${folder} count)
    math(EXPR groups "(${count} + 11) / 12 * 3 / 2")  # more sources have to come before one moves to another group
    foreach(source ${sources_of_${folder}})
      get_filename_component(name ${source} NAME)
      string(SHA256 hash ${name})
      string(SUBSTRING ${hash} 0 6 digits)
      math(EXPR group "0x${digits} % ${groups}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${folder}_${group}")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
