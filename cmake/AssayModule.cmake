# The layers of assay, lowest first. A folder under src/ may link and include only folders that
# stand before it here; assay_module() stops the configure step when one reaches back up.
set(ASSAY_LAYERS
    base yaml pages sqlite nvml
    case fill measure wire device verdict native lane goldens slot schedule store engine report shrink
    chain/shim chain/params chain/plan chain/script chain/stage chain/results chain/history chain/fleet chain/run
    http timeline inject cluster
    campaign serve cli cli/full)
# Folders with a namespace of their own, beside those within folders (chain/plan: assay::chain::plan).
set(ASSAY_NAMESPACES pages wire native http timeline inject campaign)
# What chains and timelines do without: assay_module() stops the configure step when a folder of theirs
# links one of these, directly or through another folder.
set(ASSAY_API_FOLDERS wire device verdict native lane goldens slot schedule store engine report shrink)

# assay_module(FOLDER [COLD] [LINKS folder…] [LIBRARIES target…] [EXCLUDE file…])
#
# Makes the static library assay_FOLDER from every .cc file in src/FOLDER but main.cc and those that
# EXCLUDE names. LINKS names the folders that its sources include; LIBRARIES names targets from
# outside the project. COLD marks one whose code runs so seldom that its compiling is what takes time: -Og
# takes a third less than -O2.
function(assay_module folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COLD" "" "LINKS;LIBRARIES;EXCLUDE")
  list(FIND ASSAY_LAYERS ${folder} own_layer)
  if(own_layer EQUAL -1)
    message(FATAL_ERROR "src/${folder} has no place in ASSAY_LAYERS (cmake/AssayModule.cmake)")
  endif()

  assay_target(target ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.h)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$|_avx2\\.cc$")
  file(GLOB avx2_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*_avx2.cc)
  if(avx2_sources)
    set_source_files_properties(${avx2_sources} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
  endif()
  assay_check_includes(${folder} "${arg_LINKS}" ${sources} ${avx2_sources} ${headers})
  foreach(excluded IN LISTS arg_EXCLUDE)
    list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/src/${folder}/${excluded})
  endforeach()

  set(link_targets ${arg_LIBRARIES})
  set(reach "")
  foreach(link IN LISTS arg_LINKS)
    list(FIND ASSAY_LAYERS ${link} layer)
    if(layer EQUAL -1 OR NOT layer LESS own_layer)
      message(FATAL_ERROR "src/${folder} links src/${link}, which does not stand below it")
    endif()
    assay_target(link_target ${link})
    list(APPEND link_targets ${link_target})
    get_property(reached GLOBAL PROPERTY assay_reach_${link})
    list(APPEND reach ${link} ${reached})
  endforeach()
  set_property(GLOBAL PROPERTY assay_reach_${folder} ${reach})
  foreach(other IN LISTS reach)
    if(folder MATCHES "^(chain|timeline)(/|$)" AND other IN_LIST ASSAY_API_FOLDERS)
      message(FATAL_ERROR "src/${folder} reaches src/${other}; chains and timelines stand without it")
    endif()
  endforeach()

  if(sources OR avx2_sources)
    add_library(${target} STATIC ${sources} ${avx2_sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE assay_warnings)
    if(arg_COLD)
      target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Og>)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  assay_headers_first(headers first_headers)
  target_sources(
    ${target} ${scope}
    FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}/src FILES ${headers}
    FILE_SET first_headers TYPE HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}/src FILES ${first_headers})
  target_include_directories(${target} ${scope} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${target} ${scope} ${link_targets})
  if(headers OR first_headers)
    # Every header compiles alone: target all_verify_interface_header_sets.
    set_target_properties(
      ${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
  endif()
endfunction()

# Moves from the first list to the second what the source of the same name includes before anything else: that
# source, compiled by itself, shows that the header needs nothing before it.
function(assay_headers_first all_out first_out)
  set(alone "")
  set(first_of_source "")
  foreach(header IN LISTS ${all_out})
    string(REGEX REPLACE "\\.h$" ".cc" source ${header})
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/src ${header})
    set(include "")
    if(EXISTS ${source})
      file(STRINGS ${source} include REGEX "^#include" LIMIT_COUNT 1)
    endif()
    if(include STREQUAL "#include \"${name}\"")
      list(APPEND first_of_source ${header})
    else()
      list(APPEND alone ${header})
    endif()
  endforeach()
  set(${all_out} ${alone} PARENT_SCOPE)
  set(${first_out} ${first_of_source} PARENT_SCOPE)
endfunction()

# The target of a folder under src/, or of several: chain/plan gives assay_chain_plan.
function(assay_target out)
  list(TRANSFORM ARGN REPLACE "/" "_")
  list(TRANSFORM ARGN PREPEND assay_)
  set(${out} ${ARGN} PARENT_SCOPE)
endfunction()

# Fails when a file includes a header of a folder that its module does not link, or when a file of a
# room stands outside of the room's namespace.
function(assay_check_includes folder links)
  string(REPLACE "/" "::" namespace "assay::${folder}")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} opened REGEX "^namespace ${namespace}( |::)")
    if((folder MATCHES "/" OR folder IN_LIST ASSAY_NAMESPACES) AND NOT opened)
      message(FATAL_ERROR "${file} does not stand in the namespace ${namespace}")
    endif()
    file(STRINGS ${file} lines REGEX "^#include \"[a-z]+/")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([a-z]+(/[a-z]+)?)/.*" "\\1" included "${line}")
      if(NOT included IN_LIST ASSAY_LAYERS)  # not a room, only a folder in a folder
        string(REGEX REPLACE "/.*" "" included "${included}")
      endif()
      if(NOT included STREQUAL folder AND NOT included IN_LIST links)
        message(FATAL_ERROR "${file} includes ${included}/, which src/${folder} does not link")
      endif()
    endforeach()
  endforeach()
endfunction()

# assay_cuda_module(FOLDER): beside the library of src/FOLDER, assay_FOLDER_cuda of its .cu files.
function(assay_cuda_module folder)
  if(NOT ASSAY_CUDA)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cu)
  add_library(assay_${folder}_cuda STATIC ${sources})
  target_link_libraries(assay_${folder}_cuda PUBLIC assay_${folder})
endfunction()

# assay_cuda_test(NAME SOURCES file… LINKS folder…): a program that needs a GPU, and is skipped where
# there is none.
function(assay_cuda_test name)
  if(NOT ASSAY_CUDA)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS;SOURCES")
  add_executable(${name} ${arg_SOURCES})
  list(TRANSFORM arg_LINKS REPLACE "(.+)" "assay_\\1_cuda")
  target_link_libraries(${name} PRIVATE ${arg_LINKS})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS "system;slow")
  set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(slow_tests ${name})
endfunction()

# assay_test(NAME SOURCES file… [LINKS folder…] [SYSTEM] [SLOW] [SHARDS 1 2…]): a GTest program under tests/, run by
# ctest. SYSTEM marks one that starts real programs and frameworks: it begins before the short ones, and does not
# run under sanitizers. SLOW marks one that `make check` neither builds nor runs; `make check-all` builds slow_tests.
# SHARDS splits its tests among as many runs, side by side. One program of many files compiles sooner than many
# programs.
add_custom_target(unit_tests)
add_custom_target(fuzzers)
add_custom_target(slow_tests)
function(assay_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SYSTEM;SLOW" "" "LINKS;LIBRARIES;SOURCES;SHARDS")
  add_executable(${name} ${arg_SOURCES})
  assay_target(arg_LINKS ${arg_LINKS})
  target_link_libraries(${name} PRIVATE assay_warnings ${arg_LINKS} ${arg_LIBRARIES} GTest::gmock_main)
  target_compile_definitions(${name} PRIVATE ASSAY_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  set(labels unit)
  if(arg_SYSTEM)
    set(labels system)
  else()
    add_dependencies(unit_tests ${name})
  endif()
  if(arg_SLOW)
    list(APPEND labels slow)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(slow_tests ${name})
  endif()
  set(tests ${name})
  if(arg_SHARDS)
    list(TRANSFORM arg_SHARDS PREPEND ${name}_ OUTPUT_VARIABLE tests)
  endif()
  set(index 0)
  list(LENGTH tests count)
  foreach(test IN LISTS tests)
    add_test(NAME ${test} COMMAND ${name})
    set_tests_properties(${test} PROPERTIES LABELS "${labels}"
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${count};GTEST_SHARD_INDEX=${index}")
    if(arg_SYSTEM)
      set_property(TEST ${test} PROPERTY COST 10)
    endif()
    math(EXPR index "${index} + 1")
  endforeach()
endfunction()

# assay_bench(NAME SOURCES… [LINKS folder…]): a Google Benchmark program under bench/.
function(assay_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS;LIBRARIES;SOURCES")
  add_executable(${name} ${arg_SOURCES})
  assay_target(arg_LINKS ${arg_LINKS})
  target_link_libraries(${name} PRIVATE assay_warnings ${arg_LINKS} ${arg_LIBRARIES}
                                        benchmark::benchmark)
endfunction()

# assay_fuzz(NAME SOURCES… [LINKS folder…]): a libFuzzer program under fuzz/ (preset "asan").
function(assay_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS;LIBRARIES;SOURCES")
  add_executable(${name} ${arg_SOURCES})
  assay_target(arg_LINKS ${arg_LINKS})
  add_dependencies(fuzzers ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE assay_warnings ${arg_LINKS} ${arg_LIBRARIES})
endfunction()
