# cmake -DPROFILES="a.toml;b.toml" -DOUTPUT=x.cc -P embed_profiles.cmake
set(rows "")
foreach(file IN LISTS PROFILES)
  file(READ ${file} text)
  get_filename_component(name ${file} NAME_WE)
  string(APPEND rows "    {\"${name}\", R\"toml(${text})toml\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Generated from profiles/*.toml.
#include \"policy/profiles.h\"

namespace belljar::policy {
namespace {
constexpr EmbeddedProfile kProfiles[] = {
${rows}};
}  // namespace
std::span<const EmbeddedProfile> embedded_profiles() noexcept { return kProfiles; }
}  // namespace belljar::policy
")
