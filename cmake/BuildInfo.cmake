# Writes lab's build information: run at every build (cmake -DSOURCE=… -DOUTPUT=… -DBUILD=… -P), for the commit
# moves without CMake being told. The file is touched only where it would change.
execute_process(COMMAND git -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "")
endif()
set(modified false)
if(commit)
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD RESULT_VARIABLE differs ERROR_QUIET)
  if(differs)
    set(modified true)
  endif()
endif()
set(text "#include \"lab/receipt/build_info.hpp\"

namespace assay::lab {
BuildInfo build_info() { return {\"${VERSION}\", \"${commit}\", ${modified}, \"${BUILD}\"}; }
}  // namespace assay::lab
")
set(written "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} written)
endif()
if(NOT written STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
