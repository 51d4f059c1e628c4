# A video server of a published study of ext4's journal modes: active videos are read at a total of 96 MB/s, and now
# and then a new one replaces a passive one.

# Where the files are made.
set $dir=/tmp

# The videos; of a hundred passive ones, so many exist at the start.
set $videosize=200m
set $nactive=10
set $npassive=10
set $activewidth=4
set $passivewidth=20
set $existing=50

# Who reads them, and how fast all of them together: an event is a mebibyte.
set $nthreads=48
set $megabytes=96
set $memory=10m

set $readsize=256k
set $writesize=1m

# Seconds between two new videos.
set $pause=10

set $seconds=30

eventgen rate=$megabytes

define fileset name=active, path=$dir, entries=$nactive, size=$videosize, dirwidth=$activewidth, prealloc=100, paralloc
define fileset name=passive, path=$dir, entries=$npassive, size=$videosize, dirwidth=$passivewidth,
       prealloc=$existing, paralloc

define process name=archive, instances=1
{
  thread name=replacer, instances=1, memsize=$memory
  {
    flowop deletefile     name=remove-old, filesetname=passive
    flowop createfile     name=make-open, filesetname=passive, fd=1
    flowop writewholefile name=make-write, fd=1, srcfd=1, iosize=$writesize
    flowop closefile      name=make-close, fd=1
    flowop delay          name=make-pause, value=$pause
  }
}

define process name=server, instances=1
{
  thread name=stream, instances=$nthreads, memsize=$memory
  {
    flowop read    name=play, filesetname=active, iosize=$readsize
    flowop bwlimit name=limit, target=play
  }
}

run $seconds
