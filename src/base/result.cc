#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace assay {

tl::unexpected<Error> errno_error(std::string context) {
  const int code = errno;
  return fail(std::move(context) + ": " + std::generic_category().message(code));
}

}  // namespace assay
