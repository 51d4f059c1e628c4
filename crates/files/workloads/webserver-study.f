# A web server of a published study of ext4's journal modes: each reader opens, reads and closes ten pages and
# adds a line to the access log. The pages' sizes follow a gamma law; what lies beyond the bounds is put onto them.
# All of them take 5.3 GB in the mean.

# Where the files are made.
set $dir=/tmp

# The pages, in directories of about 20 entries.
set $files=2400
set $dirwidth=20
set $meansize=2170552
set $minsize=524288
set $maxsize=31457280

# Who reads them: processes, and threads in each. The study had 1 and 100 processes of one thread.
set $nreaders=1
set $nthreads=1
set $memory=1m

# One read, and what is added to the log: anything from nothing to this much.
set $iosize=1m
set $appendsize=16k

set $seconds=30

# The variable within the parameters is dyno's; filebench wants the number itself there.
set $pagesize=cvar(type=cvar-gamma, parameters="mean:$meansize;gamma:1.5", min=$minsize, max=$maxsize)

define fileset name=pages, path=$dir, entries=$files, size=$pagesize, dirwidth=$dirwidth, prealloc=100, readonly
define fileset name=access-log, path=$dir, entries=1, size=$pagesize, dirwidth=$dirwidth, prealloc=100

define process name=reader, instances=$nreaders
{
  thread name=visitor, instances=$nthreads, memsize=$memory
  {
    flowop openfile      name=open-1, filesetname=pages, fd=1
    flowop readwholefile name=read-1, fd=1, iosize=$iosize
    flowop closefile     name=close-1, fd=1
    flowop openfile      name=open-2, filesetname=pages, fd=1
    flowop readwholefile name=read-2, fd=1, iosize=$iosize
    flowop closefile     name=close-2, fd=1
    flowop openfile      name=open-3, filesetname=pages, fd=1
    flowop readwholefile name=read-3, fd=1, iosize=$iosize
    flowop closefile     name=close-3, fd=1
    flowop openfile      name=open-4, filesetname=pages, fd=1
    flowop readwholefile name=read-4, fd=1, iosize=$iosize
    flowop closefile     name=close-4, fd=1
    flowop openfile      name=open-5, filesetname=pages, fd=1
    flowop readwholefile name=read-5, fd=1, iosize=$iosize
    flowop closefile     name=close-5, fd=1
    flowop openfile      name=open-6, filesetname=pages, fd=1
    flowop readwholefile name=read-6, fd=1, iosize=$iosize
    flowop closefile     name=close-6, fd=1
    flowop openfile      name=open-7, filesetname=pages, fd=1
    flowop readwholefile name=read-7, fd=1, iosize=$iosize
    flowop closefile     name=close-7, fd=1
    flowop openfile      name=open-8, filesetname=pages, fd=1
    flowop readwholefile name=read-8, fd=1, iosize=$iosize
    flowop closefile     name=close-8, fd=1
    flowop openfile      name=open-9, filesetname=pages, fd=1
    flowop readwholefile name=read-9, fd=1, iosize=$iosize
    flowop closefile     name=close-9, fd=1
    flowop openfile      name=open-10, filesetname=pages, fd=1
    flowop readwholefile name=read-10, fd=1, iosize=$iosize
    flowop closefile     name=close-10, fd=1
    flowop appendfilerand name=append-log, filesetname=access-log, fd=2, iosize=$appendsize
  }
}

run $seconds
