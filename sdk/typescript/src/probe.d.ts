/** What looks from inside, sdk/python's probe.py as a text: made by probe.mjs. */
export declare const PROBE: string;
