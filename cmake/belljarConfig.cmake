# find_package(belljar): the imported target belljar::belljar, a static library with everything that include/belljar declares but webhook.h,
# which is belljar::webhook.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(OpenSSL COMPONENTS Crypto)
find_dependency(ZLIB)
# Only belljar::webhook needs it.
find_package(CURL QUIET)
include(${CMAKE_CURRENT_LIST_DIR}/belljarTargets.cmake)
