// The feed receives samples while the page is visible and not paused. It connects again by itself.

const firstDelay = 1000, longestDelay = 15000; // milliseconds between two attempts

// feed calls on.history, on.sample and on.status ("connecting", "live", "retrying", "paused"). It returns the switch for pausing.
export function feed(on) {
  let source = null, paused = false, delay = firstDelay, timer = 0;

  function open() {
    close();
    if (paused || document.visibilityState === "hidden") return;
    source = new EventSource("events");
    source.addEventListener("history", (e) => {
      delay = firstDelay;
      on.history(JSON.parse(e.data));
    });
    source.addEventListener("sample", (e) => {
      on.status("live");
      on.sample(JSON.parse(e.data));
    });
    source.addEventListener("error", (e) => {
      on.status("retrying");
      if (e.target.readyState !== EventSource.CLOSED) return; // the browser tries again
      timer = setTimeout(open, delay);
      delay = Math.min(2 * delay, longestDelay);
    });
  }

  function close() {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  }

  document.addEventListener("visibilitychange", open);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (e) => { if (e.persisted) open(); });
  open();
  return (pause) => {
    paused = pause;
    on.status(pause ? "paused" : "connecting");
    open();
  };
}
