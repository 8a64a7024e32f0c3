// Records out, and numbers as they are written in them. backend/container/records.h says what they mean.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace belljar::inside {

inline constexpr size_t kHeader = 9;

void put32(char* at, uint32_t value);
void put64(char* at, uint64_t value);
uint32_t get32(const char* at);

// `record` has room for the header before its payload. Blocks: the outside always reads, and what is under way for one command is
// bounded by its window. Ends the program when nobody listens.
void send_record(char type, uint32_t id, char* record, size_t payload);
void send_number(char type, uint32_t id, uint32_t value);

}  // namespace belljar::inside
