#pragma once

namespace assay {

/// For programs, not libraries: from now on, reading a mapped file (MappedFile) beyond the end that another
/// process has cut it to ends the program with exit status 2 and a message naming the file, instead of a
/// core dump. Any other bus error ends it as it would have.
void report_shortened_files();

}  // namespace assay
