# cmake -D SOURCE=project -D GIT=git -D HEADER=file -P write_commit.cmake
#
# Writes the commit of the sources into a header. If the header has it already, the file stays untouched.
set(commit "")
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --exclude * OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#pragma once\n#define ZERO_COMMIT \"${commit}\"\n")
