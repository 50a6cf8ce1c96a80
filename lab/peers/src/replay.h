// Plays a trace as vram replay does: all events in order from one thread, round after round on the same
// allocator; what the trace never frees is freed after each round, outside the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "clock.h"
#include "peer.h"
#include "trace.h"

namespace peers {

struct ReplayOptions {
  std::string impl;
  int rounds = 5;
  int64_t work_ns = 0;      // 0: no round with other work between the events
  double limit_factor = 0;  // of the peak live bytes; 0: no limit
  int64_t deadline_ns = 0;  // since the first event; 0: none
};

template <class Peer>
class Replay {
 public:
  Replay(Peer& peer, const Trace& trace, const ReplayOptions& options)
      : peer_(peer), trace_(trace), options_(options), streams_(trace.stream_count), buffers_(trace.buffer_count) {}

  // Plays and prints one line of JSON.
  void run() {
    if (options_.limit_factor > 0) {
      peer_.limit(static_cast<int64_t>(options_.limit_factor * static_cast<double>(trace_.peak_live_bytes)));
    }
    until_ns_ = options_.deadline_ns > 0 ? now_ns() + options_.deadline_ns : INT64_MAX;
    std::string rounds;
    std::vector<double> warm;
    int64_t peak_bytes = 0;
    for (int i = 0; i < options_.rounds && !cut_short_; i++) {
      Round r = round();
      if (r.event_count == 0) break;
      double per_event = static_cast<double>(r.elapsed_ns) / static_cast<double>(r.event_count);
      if (i > 0 && !cut_short_) warm.push_back(per_event);
      peak_bytes = std::max(peak_bytes, r.reserved_peak_bytes);
      char text[256];
      std::snprintf(text, sizeof text,
                    "%s{\"ns_per_op\":%.3f,\"peak_reserved_bytes\":%lld,\"failed\":%lld,\"events\":%lld}",
                    i > 0 ? "," : "", per_event, static_cast<long long>(r.reserved_peak_bytes),
                    static_cast<long long>(r.failed_count), static_cast<long long>(r.event_count));
      rounds += text;
    }
    std::string paced;
    if (options_.work_ns > 0 && !cut_short_) paced = paced_round();
    std::printf(
        "{\"trace\":\"%s\",\"driver\":\"%s\",\"events\":%zu,\"streams\":%d,\"peak_live_bytes\":%lld,"
        "\"peak_reserved_bytes\":%lld,\"reserved_over_live\":%.6f,\"rounds\":[%s]",
        trace_.name.c_str(), options_.impl.c_str(), trace_.events.size(), trace_.stream_count,
        static_cast<long long>(trace_.peak_live_bytes), static_cast<long long>(peak_bytes),
        static_cast<double>(peak_bytes) / static_cast<double>(trace_.peak_live_bytes), rounds.c_str());
    if (!warm.empty()) std::printf(",\"warm_ns_per_op\":%.3f", quantile(warm, 0.5));
    std::printf("%s,\"cut_short\":%s}\n", paced.c_str(), cut_short_ ? "true" : "false");
    std::fflush(stdout);
  }

 private:
  struct Round {
    int64_t event_count = 0, elapsed_ns = 0, failed_count = 0, reserved_peak_bytes = 0;
  };

  // One event; false where an allocation found no memory. Its free is left out then.
  bool play(const Event& e) {
    void*& p = buffers_[e.id];
    if (e.alloc) {
      p = peer_.alloc(e.bytes, streams_[e.stream]);
      return p != nullptr;
    }
    if (p != nullptr) peer_.release(p, streams_[e.stream]);
    p = nullptr;
    return true;
  }

  Round round() {
    const int64_t stride = 4096;  // events between two looks at the clock: it must not show
    Round r;
    peer_.reset_peak();
    int64_t start = now_ns();
    for (const Event& e : trace_.events) {
      bool ok = play(e);
      r.event_count++;
      r.failed_count += !ok;
      if ((!ok || r.event_count % stride == 0) && now_ns() > until_ns_) {
        cut_short_ = true;
        break;
      }
    }
    r.elapsed_ns = now_ns() - start;
    free_all();
    r.reserved_peak_bytes = peer_.reserved_peak();
    return r;
  }

  // What is live at the end: the leftovers, and more where the round was cut short.
  void free_all() {
    for (const Event& e : trace_.leftovers) play(e);
    if (!cut_short_) return;
    for (const Event& e : trace_.events) {
      if (!e.alloc) play(e);
    }
  }

  std::string paced_round() {
    double timer_ns = timer_cost();
    std::vector<double> nanos;
    nanos.reserve(trace_.events.size());
    for (const Event& e : trace_.events) {
      work(options_.work_ns);
      int64_t start = now_ns();
      play(e);
      int64_t end = now_ns();
      nanos.push_back(std::max(0.0, static_cast<double>(end - start) - timer_ns));
      if (end > until_ns_) {
        cut_short_ = true;
        break;
      }
    }
    free_all();
    char text[160];
    std::snprintf(text, sizeof text, ",\"gap_ns\":%lld,\"p50_ns\":%.3f,\"p99_ns\":%.3f,\"p999_ns\":%.3f",
                  static_cast<long long>(options_.work_ns), quantile(nanos, 0.5), quantile(nanos, 0.99),
                  quantile(nanos, 0.999));
    return cut_short_ ? "" : text;
  }

  Peer& peer_;
  const Trace& trace_;
  ReplayOptions options_;
  Streams streams_;
  std::vector<void*> buffers_;
  int64_t until_ns_ = INT64_MAX;
  bool cut_short_ = false;
};

}  // namespace peers
