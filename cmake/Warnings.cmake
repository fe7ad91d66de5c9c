# Strict warnings and sanitizers, as one target that every module links privately.
add_library(assay_warnings INTERFACE)
target_compile_options(assay_warnings INTERFACE -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor
                                                -Wold-style-cast -Wcast-qual -Wundef)
set(ASSAY_SANITIZE "" CACHE STRING "Sanitizers for every target, as -fsanitize takes them")
if(ASSAY_SANITIZE)
  add_compile_options(-fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # toml++ 3.3 declares code unreachable that accented letters reach (is_non_ascii_horizontal_whitespace).
  add_compile_options(-fno-sanitize=unreachable)
  add_link_options(-fsanitize=${ASSAY_SANITIZE})
  # The fuzzers see which ways their inputs take through the libraries only where those are built so.
  if(ASSAY_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
  # GCC's thread sanitizer does not know fences, which Asio would use.
  if(ASSAY_SANITIZE STREQUAL "thread")
    add_compile_definitions(ASIO_DISABLE_FENCED_BLOCK BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()
