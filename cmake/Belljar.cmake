# Flags that every target of ours carries, and the three functions that declare rooms, tests and programs.

add_library(belljar_flags INTERFACE)
target_compile_options(belljar_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror -Wno-missing-field-initializers)
# Statement expressions carry BELLJAR_TRY.
target_compile_options(belljar_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-gnu-statement-expression>)
# std::stable_sort of libstdc++ 12 uses its own deprecated get_temporary_buffer, which clang 19 reports. Remove with libstdc++ 13.
target_compile_options(belljar_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
if(BELLJAR_HARDEN)
  target_compile_options(belljar_flags INTERFACE -fstack-protector-strong -fPIE)
  # Fortifying needs an optimizer; the tests' own code goes without (tests/CMakeLists.txt).
  target_compile_options(belljar_flags INTERFACE "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:BELLJAR_UNOPTIMIZED>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")
  target_compile_definitions(belljar_flags INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(belljar_flags INTERFACE -Wl,-z,relro,-z,now)
endif()
if(BELLJAR_STATIC)
  # A front stays resident as long as its command, and nearly all its text with it: what nothing calls is left out, and the release
  # preset says -Os (2.4 MiB resident instead of 3.1 with -O2; the median of `run -- true` is the same).
  target_compile_options(belljar_flags INTERFACE -ffunction-sections -fdata-sections)
endif()
if(BELLJAR_SANITIZE)
  target_compile_options(belljar_flags INTERFACE -fsanitize=${BELLJAR_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(belljar_flags INTERFACE -fsanitize=${BELLJAR_SANITIZE})
  # The manual of g++ warns of false alarms together with -fsanitize; a build without it still asks.
  target_compile_options(belljar_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
if(BELLJAR_FUZZ)
  target_compile_options(belljar_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# belljar_precompile(SET HEADERS...): headers of others that most files of a set include, parsed once for all of them. None of ours: a
# file must name what it uses (the dev preset and clang-tidy compile without), and an edit must not compile everything again.
function(belljar_precompile set)
  if(NOT BELLJAR_PCH)
    return()
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cc CONTENT "// Precompiled headers belong to a target.\n")
  add_library(belljar_precompiled_${set} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_link_libraries(belljar_precompiled_${set} PRIVATE belljar_flags)
  list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
  target_precompile_headers(belljar_precompiled_${set} PRIVATE ${ARGN})
endfunction()

# Its flags must be those of the set.
function(belljar_use_precompiled target set)
  if(BELLJAR_PCH)
    target_precompile_headers(${target} REUSE_FROM belljar_precompiled_${set})
  endif()
endfunction()

set(belljar_std algorithm array atomic cerrno chrono condition_variable cstddef cstdint cstring ctime functional map memory mutex optional
  set span string string_view system_error thread unordered_map utility variant vector fmt/core.h)
belljar_precompile(rooms ${belljar_std})
belljar_precompile(cli ${belljar_std} CLI/CLI.hpp)

# belljar_room(NAME DEPS a b c): every .cc in the current folder (not below) becomes the static library belljar_NAME.
function(belljar_room name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(belljar_${name} STATIC ${sources})
  target_include_directories(belljar_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(belljar_${name} PUBLIC belljar_flags)
  belljar_use_precompiled(belljar_${name} rooms)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(belljar_${name} PUBLIC belljar_${dep})
  endforeach()
endfunction()

# belljar_program(NAME DEPS ...): a program from the .cc files of the current folder.
function(belljar_program name)
  cmake_parse_arguments(ARG "" "" "DEPS;SOURCES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  belljar_use_precompiled(${name} cli)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${name} PRIVATE belljar_${dep})
  endforeach()
  if(BELLJAR_STATIC)
    target_link_options(${name} PRIVATE -static-pie -Wl,--gc-sections -Wl,-z,pack-relative-relocs)
  elseif(BELLJAR_HARDEN)
    target_link_options(${name} PRIVATE -pie)
  endif()
endfunction()
