<?php
// Prints the command lines that collectd's php-collection makes for each type that it knows.
// Arguments: the directory of php-collection, the directory of databases.
error_reporting(E_ERROR);
chdir($argv[1]);
// Gone since PHP 8.
function each(&$array) {
    $key = key($array);
    if ($key === null) return false;
    $value = current($array);
    next($array);
    return array($key, $value);
}
$databases = $argv[2];
require 'config.php';
require 'functions.php';
require 'definitions.php';
$config['datadirs'] = array("$databases/");
load_graph_definitions(false, false);
$spans = array('hour', 'day', 'week', 'month', 'year');
@mkdir("$databases/host/php-x", 0777, true);
$number = 0;
foreach ($GraphDefs as $type => $of) {
    touch("$databases/host/php-x/$type-one.rrd");
    print collectd_draw_generic($spans[$number++ % 5], 'host', 'php', 'x', $type, 'one') . "\n";
}
foreach ($MetaGraphDefs as $type => $make) {
    $instances = array('user', 'system', 'idle', 'wait', 'free', 'used', 'cached', 'in', 'incoming');
    foreach ($instances as $instance) touch("$databases/host/php-x/$type-$instance.rrd");
    $options = array('timespan' => $spans[$number++ % 5]);
    print $make('host', 'php', 'x', $type, $instances, $options) . "\n";
}
