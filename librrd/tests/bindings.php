<?php
// What php-rrd answers. Run with librrd and with kymo's, the output must be the same.
$start = 1700000000;
function tell($what, $result) {
    if (is_array($result)) {
        array_walk_recursive($result, function (&$value) { if (is_float($value) && is_nan($value)) $value = 'NaN'; });
        foreach (array_keys($result) as $key) if (strpos((string)$key, 'cur_row') !== false) unset($result[$key]);
        if (isset($result['image'])) $result['image'] = substr($result['image'], 1, 3);
    }
    echo $what, ' ', json_encode($result), ' ', rrd_error(), "\n";
}
tell('create', rrd_create('h.rrd', ['--start', "$start", '--step', '300', 'DS:a:GAUGE:600:U:U', 'RRA:AVERAGE:0.5:1:50']));
for ($step = 1; $step <= 20; $step++) rrd_update('h.rrd', [($start + 300 * $step) . ':' . $step * 5]);
tell('past', rrd_update('h.rrd', ['5:5']));
tell('first', rrd_first('h.rrd', 0));
tell('last', rrd_last('h.rrd'));
tell('lastupdate', rrd_lastupdate('h.rrd'));
tell('info', rrd_info('h.rrd'));
tell('fetch', rrd_fetch('h.rrd', ['AVERAGE', '--start', "$start", '--end', (string)($start + 3600)]));
tell('tune', rrd_tune('h.rrd', ['--heartbeat', 'a:900']));
tell('xport', rrd_xport(['-s', "$start", '-e', (string)($start + 3600), 'DEF:x=h.rrd:a:AVERAGE', 'XPORT:x:it']));
tell('graph', rrd_graph('h.png', ['-s', "$start", '-e', (string)($start + 3600), 'DEF:x=h.rrd:a:AVERAGE', 'LINE:x#ff0000', 'PRINT:x:MAX:%.1lf']));
tell('graph bad', rrd_graph('h.png', ['FOO']));
tell('version', rrd_version());
