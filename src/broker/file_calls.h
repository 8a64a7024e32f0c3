// The calls that name files, each performed as the kernel would have performed it for the caller, unless a rule refuses.
//
// The order is the same for all: (1) read everything from the caller by number, in the kernel's order, and see that it still waits;
// (2) take its permissions; (3) resolve to a directory descriptor and a name (path_resolver.h); (4) judge the name (file_rules.h),
// with the lock for directory renames held; (5) act on that name under that descriptor, following no link; (6) answer. A refusal
// that the kernel would have given anyway (ENOENT, EEXIST, EISDIR) is given as such and is no violation.
//
// Each takes a call of its kind and answers it. On receiver threads; may block.
#pragma once

#include "broker/file_call.h"

namespace belljar::broker {

// open, openat, openat2, creat
void handle_open(Context& context, const Call& call, Receivers::Slot& slot);
// close of a staged descriptor (staged_files.h)
void handle_close(Context& context, const Call& call, Receivers::Slot& slot);
// umask goes on by itself
void handle_umask(Context& context, const Call& call);
// All others: 0, or -errno.
int perform_mkdir(FileCall& file);
int perform_mknod(FileCall& file);
int perform_symlink(FileCall& file);
int perform_unlink(FileCall& file);
int perform_link(FileCall& file);
int perform_rename(FileCall& file);
int perform_chmod(FileCall& file);
int perform_truncate(FileCall& file);

// Answers the call when it is one on files.
bool handle_file_call(Context& context, const Call& call, Receivers::Slot& slot);

}  // namespace belljar::broker
