# A mail server that keeps each message in a file: a message is deleted, one arrives and is synced, one is read,
# marked and synced, and one is only read. All messages are in one directory; their sizes follow a gamma law.

# Where the files are made.
set $dir=/tmp

# The messages; of a hundred that there can be, so many exist at the start.
set $files=1000
set $dirwidth=1000000
set $messagesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
set $existing=80

set $nthreads=16
set $memory=10m

# One read, and what is written: anything from nothing to this much.
set $iosize=1m
set $appendsize=16k

set $seconds=60

define fileset name=messages, path=$dir, entries=$files, size=$messagesize, dirwidth=$dirwidth, prealloc=$existing

define process name=mailer, instances=1
{
  thread name=session, instances=$nthreads, memsize=$memory
  {
    flowop deletefile     name=expunge, filesetname=messages

    flowop createfile     name=deliver-open, filesetname=messages, fd=1
    flowop appendfilerand name=deliver-write, fd=1, iosize=$appendsize
    flowop fsync          name=deliver-sync, fd=1
    flowop closefile      name=deliver-close, fd=1

    flowop openfile       name=reply-open, filesetname=messages, fd=1
    flowop readwholefile  name=reply-read, fd=1, iosize=$iosize
    flowop appendfilerand name=reply-mark, fd=1, iosize=$appendsize
    flowop fsync          name=reply-sync, fd=1
    flowop closefile      name=reply-close, fd=1

    flowop openfile       name=fetch-open, filesetname=messages, fd=1
    flowop readwholefile  name=fetch-read, fd=1, iosize=$iosize
    flowop closefile      name=fetch-close, fd=1
  }
}

run $seconds
