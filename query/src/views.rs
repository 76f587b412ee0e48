//! Views with Perfetto's names.

use datafusion::common::Result;
use datafusion::execution::context::SessionContext;

/// Views of tables that are always there.
const VIEWS: &[(&str, &str)] = &[
    (
        "thread_track",
        "SELECT id, name, type, parent_id, tid AS utid, path, recording FROM track WHERE type = 'thread'",
    ),
    (
        "process_track",
        "SELECT id, name, type, parent_id, pid AS upid, path, recording FROM track WHERE type = 'process'",
    ),
    (
        "cpu_track",
        "SELECT id, name, type, parent_id, cpu, path, recording FROM track WHERE type = 'cpu'",
    ),
    (
        "counter_track",
        "SELECT id, name, type, parent_id, unit, path, recording FROM track WHERE type = 'counter'",
    ),
    (
        "state_track",
        "SELECT id, name, type, parent_id, path, recording FROM track WHERE id IN (SELECT track_id FROM state)",
    ),
    (
        "process",
        "SELECT pid AS upid, pid, max(CASE WHEN type = 'process' THEN name END) AS name, recording \
         FROM track WHERE pid IS NOT NULL GROUP BY pid, recording",
    ),
    (
        "stats",
        "SELECT CASE kind WHEN 'damage' THEN kind ELSE kind || '_lost' END AS name, 'data_loss' AS severity, \
         'trace' AS source, sum(coalesce(count, 1)) AS value, recording FROM losses GROUP BY kind, recording",
    ),
    ("slice_self_dur", "SELECT id, self_dur FROM slice"),
    (
        "thread_slice",
        "SELECT s.id, s.ts, s.dur, s.category, s.name, s.track_id, s.depth, s.parent_id, s.arg_set_id, t.tid AS utid, t.tid, \
         t.name AS thread_name, t.pid AS upid, t.pid \
         FROM slice s JOIN track t ON s.track_id = t.id WHERE t.type = 'thread'",
    ),
    ("_slice_flattened", FLATTENED),
    (
        "trace_bounds",
        "SELECT min(\"TIMESTAMP\"::BIGINT) AS start_ts, max(\"TIMESTAMP\"::BIGINT) AS end_ts FROM events",
    ),
];

/// For each time, the innermost slice of a track. It changes where a slice begins, or ends within another one: of what
/// happens at the same time, the innermost begin counts, else the outermost end.
const FLATTENED: &str = "SELECT f.id AS slice_id, f.ts, f.dur, s.depth, s.name, s.root_id, f.track_id, t.tid AS utid, t.tid, \
     t.name AS thread_name, t.pid AS upid, t.pid, t.recording FROM (\
     SELECT track_id, ts, id, coalesce(lead(ts) OVER (PARTITION BY track_id ORDER BY ts) - ts, -1) AS dur FROM (\
     SELECT track_id, ts, id, row_number() OVER (PARTITION BY track_id, ts ORDER BY is_begin DESC, level DESC) AS place FROM (\
     SELECT track_id, ts, id, 1 AS is_begin, depth::BIGINT AS level FROM slice WHERE dur <> 0 UNION ALL \
     SELECT track_id, ts + dur AS ts, parent_id AS id, 0 AS is_begin, -(depth::BIGINT) AS level FROM slice WHERE dur > 0)) \
     WHERE place = 1) f JOIN (SELECT id, depth, name, max(CASE WHEN depth = 0 THEN id END) OVER \
     (PARTITION BY track_id ORDER BY ts, depth, id ROWS UNBOUNDED PRECEDING) AS root_id FROM slice) s ON f.id = s.id \
     JOIN track t ON t.id = f.track_id";

/// Threads that tracks name.
const TRACK_THREADS: &str = "SELECT tid, max(CASE WHEN type = 'thread' THEN name END) AS name, max(pid) AS pid, \
     CAST(recording AS VARCHAR) AS recording FROM track WHERE tid IS NOT NULL GROUP BY tid, recording";

/// What scheduling is read from: the columns of a table of switches.
struct Switches {
    timestamp: String,
    cpu: String,
    prev: &'static str,
    next: &'static str,
}

/// Makes the views.
///
/// # Errors
///
/// A view cannot be planned: an error of this program.
pub(crate) async fn register(context: &SessionContext) -> Result<()> {
    for (name, query) in VIEWS {
        let time = own_name(context, "events", "timestamp").await?;
        create(context, name, &query.replace("TIMESTAMP", &time)).await?;
    }
    let switches = switches(context).await?;
    let threads = match &switches {
        Some(switches) => format!(
            "SELECT tid AS utid, tid, max(name) AS name, max(pid) AS upid, recording FROM ({TRACK_THREADS} UNION ALL \
             SELECT CAST({next} AS BIGINT) AS tid, CAST(next_comm AS VARCHAR) AS name, NULL AS pid, \
             CAST(recording AS VARCHAR) AS recording FROM sched_switch) GROUP BY tid, recording",
            next = switches.next
        ),
        None => {
            format!("SELECT tid AS utid, tid, name, pid AS upid, recording FROM ({TRACK_THREADS})")
        }
    };
    create(context, "thread", &threads).await?;
    if let Some(switches) = switches {
        let Switches {
            timestamp,
            cpu,
            prev,
            next,
        } = switches;
        create(
            context,
            "sched",
            &format!(
                "SELECT row_number() OVER (ORDER BY ts, cpu) AS id, * FROM (SELECT \
                 \"{timestamp}\"::BIGINT AS ts, \
                 coalesce(lead(\"{timestamp}\"::BIGINT) OVER turn - \"{timestamp}\"::BIGINT, -1) AS dur, \
                 CAST({cpu} AS BIGINT) AS cpu, CAST({next} AS BIGINT) AS utid, \
                 lead({STATE}) OVER turn AS end_state, CAST(next_prio AS BIGINT) AS priority, \
                 CAST(recording AS VARCHAR) AS recording \
                 FROM sched_switch WINDOW turn AS (PARTITION BY recording, {cpu} ORDER BY \"{timestamp}\")) \
                 WHERE utid <> 0"
            ),
        )
        .await?;
        let wakeups = wakeups(context).await?;
        // A thread runs from the switch to it to the switch from it, and is in the state it left in until it is woken up,
        // or else until the next switch. Who wakes up a thread that is runnable changes nothing.
        create(
            context,
            "thread_state",
            &format!(
                "SELECT row_number() OVER (ORDER BY ts, utid, part) AS id, ts, dur, cpu, utid, state, recording FROM (\
                 SELECT ts, part, coalesce(lead(ts) OVER turn - ts, -1) AS dur, \
                 CASE WHEN state = 'Running' THEN cpu END AS cpu, utid, state, recording FROM (\
                 SELECT *, lag(state) OVER (PARTITION BY recording, utid ORDER BY ts, part) AS before FROM (\
                 SELECT \"{timestamp}\"::BIGINT AS ts, 2 AS part, CAST({cpu} AS BIGINT) AS cpu, \
                 CAST({next} AS BIGINT) AS utid, 'Running' AS state, CAST(recording AS VARCHAR) AS recording \
                 FROM sched_switch UNION ALL \
                 SELECT \"{timestamp}\"::BIGINT AS ts, 0 AS part, CAST({cpu} AS BIGINT) AS cpu, \
                 CAST({prev} AS BIGINT) AS utid, {STATE} AS state, CAST(recording AS VARCHAR) AS recording \
                 FROM sched_switch{wakeups})) \
                 WHERE utid <> 0 AND (part <> 1 OR before IS NULL OR before NOT IN ('Running', 'R')) \
                 WINDOW turn AS (PARTITION BY recording, utid ORDER BY ts, part))"
            ),
        )
        .await?;
        create(context, "sched_latency_for_running_interval", LATENCIES).await?;
        create(context, "sched_previous_runnable_on_thread", RUNNABLE).await?;
    }
    Ok(())
}

/// How long threads that run were runnable before.
const LATENCIES: &str = "SELECT t.id AS thread_state_id, s.id AS sched_id, t.utid, t.runnable_latency_id, \
     t.latency_dur, t.recording FROM (SELECT *, lag(id) OVER turn AS runnable_latency_id, lag(dur) OVER turn AS latency_dur, \
     lag(state) OVER turn AS before FROM thread_state WINDOW turn AS (PARTITION BY recording, utid ORDER BY id)) t \
     JOIN sched s ON s.recording = t.recording AND s.ts = t.ts AND s.utid = t.utid AND s.cpu = t.cpu \
     WHERE t.state = 'Running' AND t.before = 'R'";

/// When threads that run became runnable last, and when they did so because they were woken up.
const RUNNABLE: &str = "SELECT id, prev_runnable_id, prev_wakeup_runnable_id, recording FROM (SELECT id, state, recording, \
     max(CASE WHEN state = 'R' THEN id END) OVER turn AS prev_runnable_id, \
     max(CASE WHEN state = 'R' AND before <> 'Running' THEN id END) OVER turn AS prev_wakeup_runnable_id FROM (\
     SELECT id, utid, state, recording, lag(state) OVER (PARTITION BY recording, utid ORDER BY id) AS before FROM thread_state) \
     WINDOW turn AS (PARTITION BY recording, utid ORDER BY id ROWS UNBOUNDED PRECEDING)) WHERE state = 'Running'";

/// What is added to the switches: threads become runnable.
async fn wakeups(context: &SessionContext) -> Result<String> {
    let mut all = String::new();
    for name in ["sched_wakeup", "sched_wakeup_new"] {
        if !context.table_exist(name)? {
            continue;
        }
        let schema = context.table_provider(name).await?.schema();
        let Some(thread) = ["tid", "pid"]
            .iter()
            .find(|name| schema.index_of(name).is_ok())
        else {
            continue;
        };
        let timestamp = own_name(context, name, "timestamp").await?;
        all.push_str(&format!(
            " UNION ALL SELECT \"{timestamp}\"::BIGINT AS ts, 1 AS part, CAST(NULL AS BIGINT) AS cpu, \
             CAST({thread} AS BIGINT) AS utid, 'R' AS state, CAST(recording AS VARCHAR) AS recording FROM {name}"
        ));
    }
    Ok(all)
}

/// The state of the thread that is switched from, as ftrace writes it.
const STATE: &str = "CASE CAST(prev_state AS BIGINT) & 255 WHEN 0 THEN 'R' WHEN 1 THEN 'S' WHEN 2 THEN 'D' \
     WHEN 4 THEN 'T' WHEN 8 THEN 't' WHEN 16 THEN 'X' WHEN 32 THEN 'Z' WHEN 64 THEN 'P' WHEN 128 THEN 'I' \
     ELSE CAST(prev_state AS VARCHAR) END";

async fn create(context: &SessionContext, name: &str, query: &str) -> Result<()> {
    // An event class may have the name.
    if context.table_exist(name)? {
        return Ok(());
    }
    let plan = context.state().create_logical_plan(query).await?;
    let view = datafusion::catalog::view::ViewTable::new(plan, Some(query.to_owned()));
    context.register_table(
        datafusion::common::TableReference::bare(name),
        std::sync::Arc::new(view),
    )?;
    Ok(())
}

/// The name of a column of kymo's own in a table.
async fn own_name(context: &SessionContext, table: &str, name: &str) -> Result<String> {
    let table = datafusion::common::TableReference::bare(table);
    let schema = context.table_provider(table).await?.schema();
    let mut own = format!("__{name}");
    for _ in 0..2 {
        if schema.index_of(&own).is_ok() {
            break;
        }
        own.remove(0);
    }
    Ok(own)
}

/// The columns of scheduling, if there are any.
async fn switches(context: &SessionContext) -> Result<Option<Switches>> {
    if !context.table_exist("sched_switch")? {
        return Ok(None);
    }
    let table = context.table_provider("sched_switch").await?;
    let schema = table.schema();
    let find = |names: &[&'static str]| {
        names
            .iter()
            .copied()
            .find(|name| schema.index_of(name).is_ok())
    };
    let (Some(cpu), Some(prev), Some(next), Some(_), Some(_), Some(_)) = (
        find(&["cpu", "cpu_id", "stream"]),
        find(&["prev_tid", "prev_pid"]),
        find(&["next_tid", "next_pid"]),
        find(&["next_comm"]),
        find(&["next_prio"]),
        find(&["prev_state"]),
    ) else {
        return Ok(None);
    };
    Ok(Some(Switches {
        timestamp: own_name(context, "sched_switch", "timestamp").await?,
        cpu: cpu.to_owned(),
        prev,
        next,
    }))
}
