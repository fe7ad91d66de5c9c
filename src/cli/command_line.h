#pragma once

namespace assay {

// Reads the command line, runs its verb and gives the exit code of the process.
int run_command_line(int argc, char** argv);

}  // namespace assay
