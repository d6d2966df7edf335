// What this page can prove by itself: each line that it was shown carries the hash of the line before,
// and checkpoints are signed over it. A gap is said, never passed over; a mismatch is an alarm.

const BEHIND = 60000; // lines that may wait; beyond, they are not checked, and counted so
const utf8 = new TextEncoder();
const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, "0")).join("");
const unhex = (s) => Uint8Array.from(s.match(/../g) || [], (x) => parseInt(x, 16));

export class Verifier {
  constructor() {
    this.checked = 0;
    this.unchecked = 0;
    this.gaps = 0;
    this.broken = [];
    this.checkpoints = 0;
    this.badCheckpoints = 0;
    this.lastCheckpoint = null;
    this.seq = 0;
    this.key = "";
    this.queue = [];
    this.busy = false;
    this.hash = "";
  }

  setKey(key) {
    if (key && key !== this.key) {
      this.key = key;
      this.imported = crypto.subtle
        .importKey("raw", unhex(key), { name: "Ed25519" }, false, ["verify"])
        .catch(() => null);
    }
  }

  add(lines) {
    if (this.queue.length + lines.length > BEHIND) {
      this.unchecked += lines.length;
      this.hash = ""; // the next one begins anew
      return;
    }
    for (const l of lines) this.queue.push(l);
    if (!this.busy) this.run();
  }

  async run() {
    this.busy = true;
    while (this.queue.length) {
      const lines = this.queue.splice(0, 2000);
      const hashes = await Promise.all(lines.map((l) => crypto.subtle.digest("SHA-256", utf8.encode(l))));
      for (let i = 0; i < lines.length; i++) await this.step(lines[i], hex(hashes[i]));
    }
    this.busy = false;
  }

  async step(line, hash) {
    const m = /^\{"seq":(\d+),"prev":"([0-9a-f]{64})","kind":"(\w+)"/.exec(line);
    const seq = m ? Number(m[1]) : 0;
    if (!m) {
      this.broken.push({ seq: this.seq + 1, why: "a line that is no record" });
    } else if (this.hash && seq === this.seq + 1) {
      if (m[2] === this.hash) this.checked++;
      else this.broken.push({ seq, why: "it does not carry the hash of the line before" });
    } else {
      if (this.seq) this.gaps++;
      this.checked++;
    }
    if (m && m[3] === "checkpoint") await this.checkpoint(JSON.parse(line), m[2], seq);
    this.seq = seq;
    this.hash = hash;
  }

  async checkpoint(c, prev, seq) {
    const key = await this.imported;
    if (!key) return;
    const said = `durward audit checkpoint 1\n${c.first}\n${seq - 1}\n${c.root}\n${prev}\n${c.time}\n`;
    const good = await crypto.subtle.verify("Ed25519", key, unhex(c.signature), utf8.encode(said));
    this.checkpoints++;
    if (!good) {
      this.badCheckpoints++;
      this.broken.push({ seq, why: "a checkpoint whose signature is wrong" });
    }
    this.lastCheckpoint = { seq, time: Date.parse(c.time), good };
  }
}
