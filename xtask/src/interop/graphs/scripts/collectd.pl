# Runs a CGI script of collectd's contrib once for each type that it knows, in one process.
# Arguments: the directory of examples, the directory of databases.
use strict;
use warnings;

BEGIN { $ENV{REQUEST_METHOD} = 'GET'; $ENV{QUERY_STRING} = ''; }
use CGI;

my ($examples, $databases) = @ARGV;

sub text {
    my ($file) = @_;
    open my $handle, '<', $file or die "$file: $!";
    local $/;
    return <$handle>;
}

sub touch {
    my ($path) = @_;
    my $folder = $databases;
    for my $part (split m{/}, $path =~ s{/[^/]*$}{}r) {
        $folder .= "/$part";
        mkdir $folder;
    }
    open my $handle, '>', "$databases/$path" or die "$path: $!";
}

# Types with several instances are drawn together.
my @several = qw(cpu df dns_qtype dns_rcode if_rx_errors memory mysql_commands nfs_procedure
    ps_state swap tcp_connections vmpage_number vmpage_action apache_scoreboard pg_n_tup_c pg_blks);

{
    package collection;
    my $text = main::text("$examples/collection.cgi");
    $text =~ s/exit \(main \(\)\);//;
    my %types = map { $_ => 1 } $text =~ /^\s{2,4}(\w+)\s*=>\s*\[\s*'/mg;
    $types{$_} = 2 for $text =~ /MetaGraphDefs->\{'?(\w+)/g;
    our @types = sort keys %types;
    $text = "package collection; CGI->import(':cgi');\n$text";
    $text =~ s/^use CGI::Carp.*$//m;
    our ($Config, @DataDirs, $Args, $MetaGraphDefs, $GraphDefs);
    # The process has a package of its own, its variables keep their names.
    eval "$text\n1" or warn $@;
    @DataDirs = ($databases);
    my @spans = qw(hour day week month year);
    my $number = 0;
    for my $type (@types) {
        my @instances = $types{$type} == 2 ? qw(user system idle wait free used cached in) : ('one');
        main::touch("host.example.org/plugin-x/$type-$_.rrd") for @instances;
        $Args = {
            timespan => $spans[$number++ % @spans], host => 'host.example.org', plugin => 'plugin',
            plugin_instance => 'x', type => $type, type_instance => $instances[0],
        };
        eval { action_show_graph('host.example.org', 'plugin', 'x', $type, $instances[0]); 1 }
            or warn "collection.cgi: $type: $@";
    }
}

$ENV{PROGRAM} = 'collection3';
{
    my $base = "$examples/collection3";
    no warnings 'once';
    $::BASE_DIR = $base;
    unshift @INC, "$base/lib";
    my $configuration = text("$base/etc/collection.conf");
    $configuration =~ s/^#DataDir .*$/DataDir "$databases"/m;
    open my $changed, '>', "$base/etc/collection.conf" or die $!;
    print $changed $configuration;
    close $changed;
    # The client of collectd's socket is not part of the package's examples.
    $INC{'Collectd/Unixsock.pm'} = 1;
    my $text = text("$base/bin/graph.cgi");
    $text =~ s/^main \(\);.*$//m;
    $text =~ s/^exit \(0\);.*$//m;
    $text = "package graph3;\n$text";
    eval "$text\n1" or warn $@;
    package graph3;
    no strict 'refs';
    my $number = 0;
    init();
    my @types = $configuration =~ /^<Type "?(\w+)"?>/mg;
    for my $type (@types) {
        my @instances = $number % 2 ? ('one') : qw(one two three);
        main::touch("host.example.org/plugin3-x/$type-$_.rrd") for @instances;
        my @of = map { "hostname=host.example.org;plugin=plugin3;plugin_instance=x;type=$type;type_instance=$_" } @instances;
        my $begin = (-3600, -86400, -604800, -2678400)[$number++ % 4];
        $ENV{QUERY_STRING} = join(';', @of, "begin=$begin");
        CGI::initialize_globals();
        $CGI::Q = CGI->new;
        eval { main(); 1 } or warn "collection3: $type: $@";
    }
}
