// The command line that all peers share:
//
//   PROGRAM [-kind NAME] [-impl NAME] bench  [-scenario NAME] [-repetitions N] [-time-ms N] [-samples N]
//   PROGRAM [-kind NAME] [-impl NAME] replay [-rounds N] [-work-us N] [-limit TIMES] [-deadline-s N] FILE.csv
//   PROGRAM sequence
//
// Results are lines of JSON on the standard output. The exit code is 0, 1 where a call failed, 2 where the
// command line cannot be.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "measure.h"
#include "replay.h"
#include "scenarios.h"
#include "sequence.h"
#include "trace.h"

namespace peers {

struct CommandLine {
  std::map<std::string, std::string> flags;
  std::vector<std::string> words;

  CommandLine(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
      std::string arg = argv[i];
      if (arg.size() > 1 && arg[0] == '-' && i + 1 < argc) {
        flags[arg.substr(1)] = argv[++i];
      } else {
        words.push_back(arg);
      }
    }
  }

  std::string text(const std::string& name, const std::string& otherwise) const {
    auto at = flags.find(name);
    return at == flags.end() ? otherwise : at->second;
  }

  double number(const std::string& name, double otherwise) const {
    auto at = flags.find(name);
    return at == flags.end() ? otherwise : std::atof(at->second.c_str());
  }
};

// The first sizes and victims of the scenario varied, for those who want to compare.
inline int print_sequence() {
  Sequence sequence(500);
  for (int i = 0; i < 1000; i++) {
    const Step& s = sequence.next();
    std::printf("%lld %d\n", static_cast<long long>(s.bytes), s.victim);
  }
  return 0;
}

template <class Peer>
int run_program(Peer& peer, const CommandLine& line, const std::string& impl) {
  const std::string command = line.words.empty() ? "" : line.words[0];
  if (command == "bench" && line.words.size() == 1) {
    Options o;
    o.impl = impl;
    o.scenario = line.text("scenario", "all");
    o.repetitions = static_cast<int>(line.number("repetitions", o.repetitions));
    o.repetition_ns = static_cast<int64_t>(line.number("time-ms", 20) * 1e6);
    o.samples = static_cast<int>(line.number("samples", o.samples));
    if (o.repetitions > 0 && o.repetition_ns > 0 && o.samples > 0) {
      peer.prepare();
      if (Scenarios<Peer>(peer, o).run()) return 0;
      std::fprintf(stderr, "%s: no scenario %s\n", impl.c_str(), o.scenario.c_str());
      return 2;
    }
  }
  if (command == "replay" && line.words.size() == 2) {
    ReplayOptions o;
    o.impl = impl;
    o.rounds = static_cast<int>(line.number("rounds", o.rounds));
    o.work_ns = static_cast<int64_t>(line.number("work-us", 0) * 1e3);
    o.limit_factor = line.number("limit", 0);
    o.deadline_ns = static_cast<int64_t>(line.number("deadline-s", 0) * 1e9);
    Trace trace = read_trace(line.words[1]);
    peer.prepare();
    Replay<Peer>(peer, trace, o).run();
    return 0;
  }
  std::fprintf(stderr, "%s: want bench [FLAGS] or replay [FLAGS] FILE.csv\n", impl.c_str());
  return 2;
}

// What a thrown error comes to.
template <class Body>
int guarded(const std::string& impl, Body&& body) {
  try {
    return body();
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::string what = e.what();
    std::fprintf(stderr, "%s: %s\n", impl.c_str(), what.substr(0, what.find('\n')).c_str());
    return 1;
  }
}

}  // namespace peers
