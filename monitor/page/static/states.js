// The states of memory: their names, their colours, and where their bytes stand in samples and in maps.

// ofSample are the states of the time line, the lowest first.
export const ofSample = [
  { name: "Live", colour: "live", field: "liveBytes", of: "in buffers" },
  { name: "Pending", colour: "pending", field: "pendingBytes", of: "freed, still used by other streams" },
  { name: "Cached", colour: "cached", field: "cachedBytes", of: "free, kept by streams" },
  { name: "Set aside", colour: "set-aside", field: "setAsideBytes", of: "of reservations, not drawn yet" },
  { name: "Free", colour: "free", field: "freeBytes", of: "free in the pool" },
];

// ofMap are the states of the map. A mixed range is drawn as a stack of them.
export const ofMap = {
  "live": { name: "Live", field: "liveBytes" },
  "pending": { name: "Pending", field: "pendingBytes" },
  "cached-block": { name: "Cached in magazines", field: "cachedBlockBytes" },
  "cached-range": { name: "Cached in free ranges", field: "cachedRangeBytes" },
  "set-aside": { name: "Set aside", field: "setAsideBytes" },
  "busy": { name: "In a driver job", field: "busyBytes" },
  "lent": { name: "Lent to a stream", field: "lentBytes" },
  "free": { name: "Free in the pool", field: "freeBytes" },
};

// streamColour is the colour of a stream's number.
export const streamColour = (stream) => (stream === 0 ? "free" : `s${(stream - 1) % 8}`);
