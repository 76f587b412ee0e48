# Has SmokePing make all pages of a configuration. Arguments: where its package is unpacked, the directory of its
# state, the directory of databases.
use strict;
use warnings;

my ($root, $state, $databases) = @ARGV;

open my $config, '>', "$state/config" or die $!;
print $config <<"END";
*** General ***
owner = Owner
contact = owner\@example.org
mailhost = localhost
sendmail = /bin/true
imgcache = $state/images
imgurl = images
datadir = $databases
piddir = $state
cgiurl = http://example.org/smokeping.cgi
smokemail = $root/etc/smokeping/smokemail
tmail = $root/etc/smokeping/tmail
dyndir = $state/dyn
*** Alerts ***
to = owner\@example.org
from = smokealert\@example.org
*** Database ***
step = 300
pings = 20
AVERAGE 0.5 1 1008
AVERAGE 0.5 12 4320
MIN 0.5 12 4320
MAX 0.5 12 4320
AVERAGE 0.5 144 720
MAX 0.5 144 720
MIN 0.5 144 720
*** Presentation ***
template = $root/etc/smokeping/basepage.html
charset = utf-8
+ overview
width = 600
height = 50
range = 10h
+ detail
width = 600
height = 200
unison_tolerance = 2
"Last 3 Hours" 3h
"Last 30 Hours" 30h
"Last 10 Days" 10d
"Last 360 Days" 360d
*** Probes ***
+ FPing
binary = /bin/true
*** Targets ***
probe = FPing
menu = Top
title = Network Latency Grapher
+ Local
menu = Local
title = Local Network
++ One
menu = One & only
title = The first: host
host = localhost
++ Two
menu = Two
title = Second host
host = localhost
++ All
menu = All
title = Several hosts
host = /Local/One /Local/Two
END
close $config;

use Smokeping;
chdir $state;
Smokeping::load_cfg("$state/config");
Smokeping::makestaticpages($Smokeping::cfg, "$state/pages");
