# find_package(belljar): the imported target belljar::belljar, a static library with everything that include/belljar declares.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(OpenSSL COMPONENTS Crypto)
find_dependency(ZLIB)
include(${CMAKE_CURRENT_LIST_DIR}/belljarTargets.cmake)
