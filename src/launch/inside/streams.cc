#include "launch/inside/streams.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "launch/inside/wire.h"

namespace belljar::inside {

bool relay(Command& command, int& fd, char type, uint64_t& count) {
  if (fd < 0 || (!command.detached && command.window == 0)) return false;
  static char record[9 + kPiece];
  const size_t most = command.detached || command.window > kPiece ? kPiece : static_cast<size_t>(command.window);
  const ssize_t got = read(fd, record + 9, most);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (got <= 0) {  // a terminal's end is EIO
    close_fd(fd);
    return false;
  }
  count += static_cast<uint64_t>(got);
  if (command.detached) return true;
  command.window -= static_cast<uint64_t>(got);
  send_record(type, command.id, record, static_cast<size_t>(got));
  return true;
}

void drop_input(Command& command) {
  free(command.input);
  command.input = nullptr;
  command.input_size = 0;
  close_fd(command.in);
}

void feed(Command& command) {
  while (command.in >= 0 && command.input_size > 0) {
    const ssize_t wrote = write(command.in, command.input, command.input_size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    if (wrote <= 0) {
      drop_input(command);
      send_number('b', command.id, 0);  // nobody reads it any more
      return;
    }
    command.input_size -= static_cast<size_t>(wrote);
    memmove(command.input, command.input + wrote, command.input_size);
    send_number('w', command.id, static_cast<uint32_t>(wrote));
  }
  if (command.close_input && command.input_size == 0) drop_input(command);
}

void take_input(Command& command, const char* bytes, size_t size) {
  if (command.in < 0 || size == 0) return;
  char* const larger = static_cast<char*>(realloc(command.input, command.input_size + size));
  if (larger == nullptr) {
    drop_input(command);
    return send_number('b', command.id, 0);
  }
  command.input = larger;
  memcpy(command.input + command.input_size, bytes, size);
  command.input_size += size;
  feed(command);
}

bool drained(Command& command) {
  uint64_t count = 0;
  while (count < kDrainAtMost && (relay(command, command.out, 'o', count) || relay(command, command.err, 'e', count))) {
  }
  if (command.window > 0 || command.detached || count >= kDrainAtMost) return true;
  pollfd more[2] = {{command.out, POLLIN, 0}, {command.err, POLLIN, 0}};
  return poll(more, 2, 0) <= 0 || ((more[0].revents | more[1].revents) & POLLIN) == 0;
}

}  // namespace belljar::inside
