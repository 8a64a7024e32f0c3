# find_package(belljar): the imported target belljar::belljar, a static library with everything that include/belljar declares but these headers:
# webhook.h is belljar::webhook (install component library-webhook, needs libcurl); command_rules.h, turn.h, content_policy.h and review.h are
# belljar::guard (library-guard, needs tree-sitter); guardian.h is belljar::guardian (library-guardian, needs both).
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(OpenSSL COMPONENTS Crypto SSL)
find_dependency(ZLIB)
include(${CMAKE_CURRENT_LIST_DIR}/belljarTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/belljarGuardTargets.cmake OPTIONAL)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/belljarWebhookTargets.cmake)
  find_dependency(CURL)
  include(${CMAKE_CURRENT_LIST_DIR}/belljarWebhookTargets.cmake)
endif()
if(TARGET belljar::guard AND EXISTS ${CMAKE_CURRENT_LIST_DIR}/belljarGuardianTargets.cmake)
  find_dependency(CURL)
  include(${CMAKE_CURRENT_LIST_DIR}/belljarGuardianTargets.cmake)
endif()
