# Stands in the place of rrdtool's Perl module: writes each call of graph as a line of JSON to $RECORD
# and answers as if it had drawn.
package RRDs;

use strict;
use warnings;
use JSON::PP;

our $VERSION = 1.7002;
my $json = JSON::PP->new->ascii->canonical;

sub graph {
    my ($file, @words) = @_;
    open my $record, '>>', $ENV{RECORD} or die "RECORD: $!";
    my @text = map { my $word = "$_"; utf8::decode($word) unless utf8::is_utf8($word); $word } @words;
    print $record $json->encode({ program => $ENV{PROGRAM}, words => \@text }), "\n";
    close $record;
    if ($file ne '-') {
        open my $image, '>', $file or die "$file: $!";
        print $image "a picture\n";
        close $image;
    }
    # Scripts compute with what PRINT prints.
    return ([ map { '5.2e-02' } grep { /^PRINT:/ } @words ], 600, 200);
}

sub error { return undef }
sub last { return time - time % 300 }
sub info { return { map { ("ds[value].$_" => 'GAUGE') } qw(type index) } }
sub AUTOLOAD { return }

1;
