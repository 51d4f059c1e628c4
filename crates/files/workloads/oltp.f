# A database that processes transactions: readers that use the processor between reads, writers that write
# asynchronously and synchronously, and a writer of the log, tied together by semaphores.

# Where the files are made.
set $dir=/tmp

# The tables and the log.
set $files=10
set $tablesize=10m
set $logsize=10m
set $dirwidth=1024
# How much of each file is worked on: 0 is all of it.
set $workingset=0

# Who works on them: readers and writers, each with memory of its own.
set $nshadows=200
set $nwriters=10
set $memory=1m
set $logmemory=1m

# One read or write, one write of the log, and how many writes a writer starts at a time.
set $iosize=2k
set $logiosize=256k
set $batch=100
set $directio=false

# What readers and writers do in between: so many bytes stored, one after another.
set $readerwork=200000
set $writerwork=10000

# After so many reads the log is written, and the tables; and how far the readers may be ahead.
set $logevery=3200
set $logahead=1000
set $writeevery=1000
set $writeahead=2000

set $seconds=60

define fileset name=tables, path=$dir, entries=$files, size=$tablesize, dirwidth=$dirwidth, prealloc=100
define fileset name=redo, path=$dir, entries=1, size=$logsize, dirwidth=$dirwidth, prealloc=100

define process name=log-writer, instances=1
{
  thread name=log-writer, memsize=$logmemory, useism
  {
    flowop aiowrite name=log-write, filesetname=redo, iosize=$logiosize, random, dsync, directio=$directio
    flowop aiowait  name=log-wait
    flowop semblock name=log-turn, value=$logevery, highwater=$logahead
  }
}

define process name=table-writer, instances=$nwriters
{
  thread name=table-writer, memsize=$memory, useism
  {
    flowop aiowrite name=table-write, filesetname=tables, iosize=$iosize, workingset=$workingset, iters=$batch,
           random, dsync, opennext, directio=$directio
    flowop hog      name=table-work, value=$writerwork
    flowop semblock name=table-turn, value=$writeevery, highwater=$writeahead
    flowop aiowait  name=table-wait
  }
}

define process name=reader, instances=$nshadows
{
  thread name=shadow, memsize=$memory, useism
  {
    flowop read    name=table-read, filesetname=tables, iosize=$iosize, workingset=$workingset,
           random, opennext, directio=$directio
    flowop hog     name=reader-work, value=$readerwork
    flowop sempost name=post-log, target=log-turn, value=1, blocking
    flowop sempost name=post-tables, target=table-turn, value=1, blocking
  }
}

run $seconds
