// A run, or a sandbox that stays, whose workspace is a transaction: what the backend needs for that, and what people are told.
#pragma once

#include <string>

#include "backend/backend.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/txn.h"
#include "txn/store.h"

namespace belljar::runtime {

// Errors: kInvalidArgument, a mode in which nothing, or anything, is written around the layers.
Result<void> check_transaction_mode(const Policy& policy);

backend::WorkspaceLayers to_layers(const txn::Layers& layers);

// The kernel copies a file into a layer only where its group exists in the sandbox, and an ordinary user's has one group. What that
// means for the workspace, or nothing where it has the user's group.
std::string group_limit(const txn::Place& place);
EnforcementClause transaction_clause(const txn::Place& place);

// `error` of a start, in words where the file system of the state directory is what cannot hold layers.
Error explain_overlay(Error error, const txn::Place& place);

}  // namespace belljar::runtime
