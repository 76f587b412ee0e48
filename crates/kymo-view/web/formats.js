// What the page saves: the formats of `kymo convert`.

/** What `kymo convert` calls a format, how names of its files end, and what it is. Directories are saved in an archive, which kymo opens. */
export const FORMATS = /** @type {const} */ ([
  ["perfetto", "pftrace", "A trace for Perfetto"],
  ["chrome", "json", "JSON for Chrome's tracing"],
  ["jsonl", "jsonl", "JSON lines"],
  ["csv", "csv", "Comma-separated values"],
  ["ctf1.8", "ctf.tar", "A trace (CTF 1.8)"],
  ["ctf2", "ctf.tar", "A trace (CTF 2)"],
  ["ctf-rfc", "ctf.tar", "A trace (CTF, draft of 2010)"],
  ["cpel", "cpel", "An event log for VPP (CPEL)"],
  ["elog", "elog", "An event log for VPP (elog)"],
  ["rrd", "rrd", "A round-robin database of event counts"],
  ["parquet", "parquet.tar", "Parquet tables"],
  ["arrow", "arrows", "An Arrow stream"],
]);
