// Traces: comma-separated text, as package internal/trace describes it, unpacked beforehand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace peers {

struct Event {
  int64_t bytes;
  uint32_t id;
  uint16_t stream;  // the buffer's, for frees too
  bool alloc;
};

struct Trace {
  std::string name;
  std::vector<Event> events;
  std::vector<Event> leftovers;  // frees that the trace lacks, in order of allocation
  uint32_t buffer_count = 0;
  int stream_count = 0;
  int64_t peak_live_bytes = 0;
};

// Reads a trace; throws with the file and the line where a row breaks a rule that the replay relies on.
inline Trace read_trace(const std::string& path) {
  FILE* in = std::fopen(path.c_str(), "r");
  if (in == nullptr) throw std::runtime_error(path + ": cannot be opened");
  Trace t;
  t.name = path.substr(path.find_last_of('/') + 1);
  if (size_t dot = t.name.rfind(".csv"); dot != std::string::npos) t.name.resize(dot);
  std::vector<Event> owner;  // by id; alloc is true while it is live
  char line[256];
  int line_count = 0;
  int64_t live_bytes = 0;
  const char* wrong = nullptr;
  while (wrong == nullptr && std::fgets(line, sizeof line, in) != nullptr) {
    if (line_count++ == 0) {
      if (std::string(line).rfind("t_us,op,id,size,stream", 0) != 0) wrong = "not the header of a trace";
      continue;
    }
    long long micros, id, bytes, stream;
    char op;
    if (std::sscanf(line, "%lld,%c,%lld,%lld,%lld", &micros, &op, &id, &bytes, &stream) != 5) {
      wrong = "not a row";
    } else if (bytes < 1 || stream < 0 || stream > 0xffff) {
      wrong = "size or stream cannot be";
    } else if (op == 'a' && id == static_cast<long long>(owner.size())) {
      owner.push_back({bytes, static_cast<uint32_t>(id), static_cast<uint16_t>(stream), true});
      t.events.push_back(owner.back());
      t.stream_count = std::max(t.stream_count, static_cast<int>(stream) + 1);
      live_bytes += bytes;
      t.peak_live_bytes = std::max(t.peak_live_bytes, live_bytes);
    } else if (op == 'f' && id >= 0 && id < static_cast<long long>(owner.size()) &&
               owner[static_cast<size_t>(id)].alloc && owner[static_cast<size_t>(id)].bytes == bytes) {
      Event& e = owner[static_cast<size_t>(id)];
      e.alloc = false;
      t.events.push_back(e);
      live_bytes -= bytes;
    } else {
      wrong = "id or size does not fit the rows before";
    }
  }
  std::fclose(in);
  if (wrong == nullptr && t.events.empty()) wrong = "no events";
  if (wrong != nullptr) throw std::runtime_error(path + ":" + std::to_string(line_count) + ": " + wrong);
  for (Event e : owner) {
    if (!e.alloc) continue;
    e.alloc = false;
    t.leftovers.push_back(e);
  }
  t.buffer_count = static_cast<uint32_t>(owner.size());
  return t;
}

}  // namespace peers
