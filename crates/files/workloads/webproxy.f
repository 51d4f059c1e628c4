# A web proxy's cache: each thread throws one object away, stores a new one, and reads five.
# All objects are in one directory.

# Where the files are made.
set $dir=/tmp

# The objects; of a hundred that there can be, so many exist at the start.
set $files=10000
set $dirwidth=1000000
set $objectsize=16k
set $existing=80

set $nthreads=100
set $memory=10m

# One read, and the size of a new object: anything from nothing to this much.
set $iosize=1m
set $appendsize=16k

set $seconds=60

define fileset name=objects, path=$dir, entries=$files, size=$objectsize, dirwidth=$dirwidth, prealloc=$existing

define process name=proxy, instances=1
{
  thread name=worker, instances=$nthreads, memsize=$memory
  {
    flowop deletefile     name=evict, filesetname=objects
    flowop createfile     name=store-open, filesetname=objects, fd=1
    flowop appendfilerand name=store-write, fd=1, iosize=$appendsize
    flowop closefile      name=store-close, fd=1
    flowop openfile      name=open-1, filesetname=objects, fd=1
    flowop readwholefile name=read-1, fd=1, iosize=$iosize
    flowop closefile     name=close-1, fd=1
    flowop openfile      name=open-2, filesetname=objects, fd=1
    flowop readwholefile name=read-2, fd=1, iosize=$iosize
    flowop closefile     name=close-2, fd=1
    flowop openfile      name=open-3, filesetname=objects, fd=1
    flowop readwholefile name=read-3, fd=1, iosize=$iosize
    flowop closefile     name=close-3, fd=1
    flowop openfile      name=open-4, filesetname=objects, fd=1
    flowop readwholefile name=read-4, fd=1, iosize=$iosize
    flowop closefile     name=close-4, fd=1
    flowop openfile      name=open-5, filesetname=objects, fd=1
    flowop readwholefile name=read-5, fd=1, iosize=$iosize
    flowop closefile     name=close-5, fd=1
  }
}

run $seconds
