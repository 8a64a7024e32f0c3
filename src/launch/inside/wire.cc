#include "launch/inside/wire.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

namespace belljar::inside {

namespace {

void write_all(const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t wrote = write(1, bytes, size);
    if (wrote > 0) {
      bytes += wrote;
      size -= static_cast<size_t>(wrote);
    } else if (errno == EAGAIN) {
      pollfd wait{1, POLLOUT, 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      _exit(1);  // nobody listens
    }
  }
}

}  // namespace

void put32(char* at, uint32_t value) {
  at[0] = static_cast<char>(value >> 24);
  at[1] = static_cast<char>(value >> 16);
  at[2] = static_cast<char>(value >> 8);
  at[3] = static_cast<char>(value);
}
void put64(char* at, uint64_t value) {
  put32(at, static_cast<uint32_t>(value >> 32));
  put32(at + 4, static_cast<uint32_t>(value));
}
uint32_t get32(const char* at) {
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(at);
  return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 | static_cast<uint32_t>(bytes[2]) << 8 |
         bytes[3];
}

void send_record(char type, uint32_t id, char* record, size_t payload) {
  record[0] = type;
  put32(record + 1, id);
  put32(record + 5, static_cast<uint32_t>(payload));
  write_all(record, payload + 9);
}

void send_number(char type, uint32_t id, uint32_t value) {
  char record[9 + 4];
  put32(record + 9, value);
  send_record(type, id, record, 4);
}

}  // namespace belljar::inside
