# monolock_embed(TARGET NAMESPACE a::b FUNCTION f [FOLDER page] FILES index.html…)
# Makes a::b::f() part of a target of this folder: the files, which lie here or in FOLDER, by their names as listed. The
# caller declares it in a header: std::span<const web::embedded_file> f() noexcept. A file that changes is embedded
# again by the next build.
function(monolock_embed target)
  cmake_parse_arguments(arg "" "NAMESPACE;FUNCTION;FOLDER" "FILES" ${ARGN})
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed_files.cmake")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${target}_${arg_FUNCTION}.cpp")
  cmake_path(APPEND CMAKE_CURRENT_SOURCE_DIR "${arg_FOLDER}" OUTPUT_VARIABLE folder)
  set(pairs "")
  set(paths "")
  foreach(file IN LISTS arg_FILES)
    list(APPEND pairs "${file}=${folder}/${file}")
    list(APPEND paths "${folder}/${file}")
  endforeach()
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -D "OUTPUT=${output}" -D "NAMESPACE=${arg_NAMESPACE}" -D "FUNCTION=${arg_FUNCTION}"
            -D "FILES=${pairs}" -P "${script}"
    DEPENDS ${paths} "${script}"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
