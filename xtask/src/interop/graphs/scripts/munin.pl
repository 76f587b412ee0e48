# Runs Munin's grapher over a datafile. Argument: the directory of its state.
use strict;
use warnings;

my ($state) = @ARGV;
use Storable;
use Munin::Master::Utils;
use Munin::Master::GraphOld;

Storable::nstore(munin_readconfig_raw("$state/datafile"), "$state/datafile.storable");
{
    no warnings 'redefine';
    # It asks whether files are there and when they were updated.
    *Munin::Master::GraphOld::munin_runlock = sub { 1 };
    *Munin::Master::GraphOld::munin_removelock = sub { 1 };
}
graph_startup([
    '--config', "$state/munin.conf", '--nofork', '--skip-locking', '--skip-stats', '--force-run-as-root',
    '--nolazy', '--log-file', '/dev/null',
]);
graph_main([qw(--host host.example --day --week --month --year --sumweek --sumyear)]);
