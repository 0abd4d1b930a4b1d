# A router that knows no hosts: it answers each packet of TCP to the port given, on whatever link, with the ICMP message "destination host unknown" (type 3, code 7; RFC 1122, 3.2.2.1).
use strict;
use warnings;
use Socket;

my $port = shift;
my ($family_of_links, $internet, $tcp, $icmp) = (17, 0x0800, 6, 1);
socket(my $links, $family_of_links, SOCK_RAW, unpack('S', pack('n', $internet))) or die "links: $!";
socket(my $answers, AF_INET, SOCK_RAW, $icmp) or die "answers: $!";
$| = 1;
print "ready\n";

while (1) {
  defined recv($links, my $frame, 2048, 0) or die "recv: $!";
  my $packet = substr($frame, 14);
  my ($protocol, $sender, $to_port) = unpack('x9 C x2 a4 x6 n', $packet);
  next unless $protocol == $tcp && $to_port == $port;
  # The header of the packet and the first eight bytes behind it, so that the sender finds its socket.
  my $message = pack('CCnN', 3, 7, 0, 0) . substr($packet, 0, 28);
  my $sum = 0;
  $sum += $_ for unpack('n*', $message);
  $sum = ($sum & 0xffff) + ($sum >> 16) while $sum >> 16;
  substr($message, 2, 2) = pack('n', ~$sum & 0xffff);
  send($answers, $message, 0, pack_sockaddr_in(0, $sender)) or die "send: $!";
}
