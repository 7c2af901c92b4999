// Which changes were read: a place in the change log up to which all were, and single ones after it.
// It is kept in this browser, for each collection of its own.

const MOST = 500;

export class ReadMarks {
  constructor(data) {
    this.name = `levada-read ${data}`;
    const kept = stored(this.name);
    this.known = kept !== null;
    this.steps = stepsOf(kept?.place || "");
    this.ids = new Set(Array.isArray(kept?.ids) ? kept.ids : []);
    this.at = kept?.at || null;
  }

  // A place beyond the end of the log is that of a collection which was there before.
  begin(newest) {
    const last = stepsOf(newest);
    if (!this.known || this.steps.some((step, shard) => step > (last[shard] ?? Infinity))) this.readAll(newest, null);
  }

  isUnread(change) {
    if (!this.known || this.ids.has(change.id)) return false;
    const [shard, step] = change.id.split("-").map(Number);
    return step > (this.steps[shard] || 0);
  }

  read(change) {
    if (!this.isUnread(change)) return false;
    this.ids.add(change.id);
    if (this.ids.size > MOST) this.ids.delete(this.ids.values().next().value);
    this.keep();
    return true;
  }

  readAll(place, at = new Date().toISOString()) {
    [this.known, this.steps, this.ids, this.at] = [true, stepsOf(place), new Set(), at];
    this.keep();
  }

  get place() { return this.steps.join("."); }

  keep() {
    try {
      localStorage.setItem(this.name, JSON.stringify({ place: this.place, ids: [...this.ids], at: this.at }));
    } catch {
      // No room, or not allowed: the marks hold as long as this page is open.
    }
  }
}

const stepsOf = (place) => (/^\d+(\.\d+)*$/.test(place) ? place.split(".").map(Number) : []);

function stored(name) {
  try {
    return JSON.parse(localStorage.getItem(name));
  } catch {
    return null;
  }
}
