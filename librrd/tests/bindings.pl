# What RRDs answers. Run with librrd and with kymo's, the output must be the same.
use strict; use warnings;
use RRDs;
use POSIX;

sub told { my ($what) = @_; my $error = RRDs::error; print "$what: ", defined $error ? "ERROR $error" : 'ok', "\n" }
sub shown { my ($value) = @_; ref $value eq 'ARRAY' ? '[' . join(',', map { shown($_) } @$value) . ']' : defined $value ? $value : 'undef' }

printf "%.4f\n", $RRDs::VERSION;
my $start = 1700000000;
for my $file ('a.rrd', 'b.rrd') {
    RRDs::create($file, '--start', $start, '--step', '60', 'DS:in:GAUGE:120:U:U', 'DS:out:COUNTER:120:0:U',
        'DS:sum:COMPUTE:in,out,+', 'RRA:AVERAGE:0.5:1:100', 'RRA:MAX:0.5:5:50', 'RRA:HWPREDICT:100:0.1:0.0035:20');
    told("create $file");
}
RRDs::create('bad.rrd', 'DS:x:FOO:1:U:U'); told('create bad');
RRDs::create('a.rrd', '-O', 'DS:x:GAUGE:1:U:U', 'RRA:LAST:0:1:1'); told('create over');
for my $step (1 .. 150) {
    my $time = $start + 60 * $step;
    RRDs::update('a.rrd', "$time:" . ($step % 17 / 3) . ':' . $step * 1000) ;
    told("update $step") if $step % 50 == 0;
}
RRDs::update('a.rrd', '-t', 'out:in', ($start + 9060) . ':5:6', ($start + 9120) . ':U:7'); told('template');
RRDs::update('a.rrd', '5:1:2'); told('past');
RRDs::update('a.rrd', ($start + 99999) . ':x:2'); told('not a number');
RRDs::update('none.rrd', 'N:1'); told('no file');
my $written = RRDs::updatev('a.rrd', ($start + 9600) . ':3:160000'); told('updatev');
print "$_ = ", shown($written->{$_}), "\n" for sort keys %$written;
print RRDs::first('a.rrd', '--rraindex', 1), ' ', RRDs::last('a.rrd'), "\n"; told('first, last');
my ($from, $step, $names, $rows) = RRDs::fetch('a.rrd', 'MAX', '-s', $start, '-e', 'start+2h'); told('fetch');
print join(' ', $from, $step, @$names), "\n"; print shown($_), "\n" for @$rows;
RRDs::fetch('a.rrd', 'FOO'); told('fetch FOO');
my $info = RRDs::info('a.rrd'); told('info');
print "$_ = ", shown($info->{$_}), "\n" for grep { !/cur_row/ } sort keys %$info;
RRDs::tune('a.rrd', '-h', 'in:300', '--maximum', 'in:50'); told('tune');
RRDs::tune('a.rrd', '-h', 'no:300'); told('tune no');
RRDs::dump('a.rrd', 'a.xml'); told('dump');
RRDs::restore('a.xml', 'c.rrd'); told('restore');
print RRDs::last('c.rrd'), "\n";
RRDs::resize('a.rrd', 0, 'GROW', 10) if defined &RRDs::resize;
my ($s, $e) = RRDs::times('end-1day', '20231120 12:00'); told('times'); print "$s $e\n";
RRDs::times('foo', 'now'); told('times foo');
my ($xs, $xe, $xstep, $cols, $legend, $data) = RRDs::xport('-s', $start, '-e', $start + 3600, "DEF:a=a.rrd:in:AVERAGE",
    'CDEF:b=a,10,*', 'XPORT:a:first', 'XPORT:b:second'); told('xport');
print shown([$xs, $xe, $xstep, $cols, $legend]), "\n", shown($data), "\n";
my @graph = ('-s', $start, '-e', $start + 7200, '-w', '300', 'DEF:a=a.rrd:in:AVERAGE', 'DEF:m=a.rrd:in:MAX', 'VDEF:v=a,AVERAGE',
    'LINE1:a#ff0000:legend of it', 'AREA:m#00ff0080', 'PRINT:v:%.3lf', 'PRINT:a:MAX:%5.1lf %S', 'GPRINT:v:avg %.2lf');
my ($texts, $width, $height) = RRDs::graph('g.png', @graph); told('graph'); print shown($texts), " $width $height\n";
my $facts = RRDs::graphv('-', @graph); told('graphv');
for my $key (sort keys %$facts) { my $value = $facts->{$key}; $value = substr $value, 1, 3 if $key eq 'image'; print "$key = ", shown($value), "\n" }
RRDs::graph('g.png', 'LINE:x#ff0000'); told('graph bad');
RRDs::flushcached('--daemon', 'unix:/nowhere/sock', 'a.rrd'); told('flushcached');
print defined RRDs::lastupdate('a.rrd') ? "lastupdate\n" : "none\n" if defined &RRDs::lastupdate;

# Rows that the program has.
RRDs::fetch_cb_register(sub {
    my ($request) = @_;
    my $step = 300; my $begin = $request->{start} - $request->{start} % $step;
    # RRDs loses its place if Perl's stack grows here: no long lists.
    my (@one, @two);
    for my $row (1 .. ($request->{end} - $begin) / $step + 1) { push @one, $row % 7; push @two, $row % 7 * 2 }
    return { step => $step, start => $begin, data => { one => \@one, two => \@two } };
}); told('register');
($from, $step, $names, $rows) = RRDs::fetch('cb//thing', 'AVERAGE', '-s', $start, '-e', $start + 3600); told('fetch callback');
print join(' ', $from, $step, sort @$names), "\n"; print scalar @$rows, "\n" if $rows;
($texts) = RRDs::graph('cb.png', '-s', $start, '-e', $start + 86400, '-w', '100', 'DEF:x=cb//thing:two:AVERAGE', 'DEF:y=cb//thing:one:MAX:reduce=MAX:step=900',
    'LINE:x#0000ff', 'LINE:y#ff00ff', 'PRINT:x:MAX:%.1lf', 'PRINT:y:AVERAGE:%.3lf'); told('graph callback'); print shown($texts), "\n";
# A callback that fails says why.
RRDs::fetch_cb_register(sub { my $start = $_[0]{start}; return { step => 60, start => $start, data => { 'n' x 20 => [1, 2, 3] } } });
RRDs::graph('cb.png', '-s', $start, '-e', $start + 600, 'DEF:x=cb//thing:two:AVERAGE', 'LINE:x#0000ff'); told('callback of a long name');
# The zone changes while the program runs.
for my $zone ('UTC', 'Asia/Tokyo', 'EST5EDT') { $ENV{TZ} = $zone; POSIX::tzset(); my ($s, $e) = RRDs::times('00:00 20240701', '12:00 20240702'); print "$zone $s $e\n" }
