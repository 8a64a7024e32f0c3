# Flags that every target of ours carries, and the functions that declare rooms, programs and what is compiled together.

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
# file must name what it uses (the dev preset and clang-tidy compile without), and an edit must not compile everything again. Nor CLI11:
# its inline functions instantiate templates at the end of each file, which cost 5 s even where nothing of it is used.
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

# belljar_unity(NAME LIST [ALONE a.cc b.cc]): batches of about eight files in the place of the files in LIST, the sources of target NAME,
# so that the headers are read and the templates instantiated once for each batch. What that asks of the files: names in anonymous
# namespaces that differ within a target. ALONE: files that cannot share: a macro, flags of their own, an object of its own for the
# linker. The dev preset, which clang-tidy reads, compiles file by file: each still names what it uses.
#
# Not CMake's own UNITY_BUILD, which names the files by absolute paths: what a compiler cache learnt in one clone would be of no use in
# another. cmake/cold.ld orders the program's text by object, so the files it lists are in batches without others.
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/cold.ld)
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/cold.ld belljar_cold_lines REGEX "^ *[*](/|libbelljar_[a-z_0-9]+[.]a:)[a-z_0-9*.]+[.]o[(]")
set(belljar_batch 8)
function(belljar_unity name list)
  if(NOT BELLJAR_UNITY)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "ALONE" ${ARGN})
  set(cold_names "none")
  foreach(line IN LISTS belljar_cold_lines)
    string(REGEX MATCH "^ *[*](/|lib([a-z_0-9]+)[.]a:)([a-z_0-9*.]+)[.]o[(]" line "${line}")
    set(room "${CMAKE_MATCH_2}")
    set(object "${CMAKE_MATCH_3}")
    if(room STREQUAL name OR (room STREQUAL "" AND name MATCHES "^belljar_cli_objects"))
      string(REPLACE "." "[.]" object "${object}")
      string(REPLACE "*" ".*" object "${object}")
      string(APPEND cold_names "|${object}")
    endif()
  endforeach()
  set(result "")
  set(warm "")
  set(cold "")
  foreach(source IN LISTS ${list})
    get_filename_component(file ${source} NAME)
    if(file IN_LIST ARG_ALONE)
      list(APPEND result ${source})
    elseif(file MATCHES "^(${cold_names})$")
      list(APPEND cold ${source})
    else()
      list(APPEND warm ${source})
    endif()
  endforeach()
  foreach(kind IN ITEMS warm cold)
    list(LENGTH ${kind} count)
    if(count LESS 2)
      list(APPEND result ${${kind}})
      continue()
    endif()
    math(EXPR batches "(${count} + ${belljar_batch} - 1) / ${belljar_batch}")
    set(i 0)
    foreach(source IN LISTS ${kind})
      file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${source})
      string(REGEX REPLACE "^(src|tests)/" "" relative ${relative}) # the directories that the target finds includes in
      math(EXPR batch "${i} * ${batches} / ${count}")
      math(EXPR i "${i} + 1")
      string(APPEND text_${kind}_${batch} "#include \"${relative}\"\n")
    endforeach()
    math(EXPR last "${batches} - 1")
    foreach(batch RANGE ${last})
      set(file ${CMAKE_CURRENT_BINARY_DIR}/unity/${kind}_${name}_${batch}.cc)
      file(CONFIGURE OUTPUT ${file} CONTENT "// Made by belljar_unity().\n${text_${kind}_${batch}}" @ONLY)
      # A class of a .cc may hold types of its anonymous namespace; g++ takes a .cc that is included for a header, where it may not.
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
      list(APPEND result ${file})
    endforeach()
  endforeach()
  set(${list} ${result} PARENT_SCOPE)
endfunction()

# belljar_room(NAME DEPS a b c [ALONE x.cc]): every .cc in the current folder (not below) becomes the static library belljar_NAME. ALONE:
# as belljar_unity() has it; `*`: all of them.
function(belljar_room name)
  cmake_parse_arguments(ARG "" "" "DEPS;ALONE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(NOT ARG_ALONE STREQUAL "*")
    belljar_unity(belljar_${name} sources ALONE ${ARG_ALONE})
  endif()
  add_library(belljar_${name} STATIC ${sources})
  target_include_directories(belljar_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(belljar_${name} PUBLIC belljar_flags)
  belljar_use_precompiled(belljar_${name} rooms)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(belljar_${name} PUBLIC belljar_${dep})
  endforeach()
endfunction()

# belljar_program(NAME SOURCES files... DEPS rooms...)
function(belljar_program name)
  cmake_parse_arguments(ARG "" "" "DEPS;SOURCES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  belljar_use_precompiled(${name} rooms)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${name} PRIVATE belljar_${dep})
  endforeach()
  if(BELLJAR_STATIC)
    target_link_options(${name} PRIVATE -static-pie -Wl,--gc-sections -Wl,-z,pack-relative-relocs)
  elseif(BELLJAR_HARDEN)
    target_link_options(${name} PRIVATE -pie)
  endif()
endfunction()
