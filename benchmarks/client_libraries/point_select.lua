-- Point reads of a YCSB row by sysbench: the same statement, keys and row as src/main.rs has.

sysbench.cmdline.options = {
   records = {"how many rows there are", 10000},
}

function thread_init()
   connection = sysbench.sql.driver():connect()
   statement = connection:prepare("SELECT * FROM usertable WHERE ycsb_key = ?")
   key = statement:bind_create(sysbench.sql.type.CHAR, 64)
   statement:bind_param(key)
end

function event()
   local wanted = string.format("user%010d", sysbench.rand.uniform(0, sysbench.opt.records - 1))
   key:set(wanted)
   if statement:execute().nrows ~= 1 then
      error("no row of " .. wanted)
   end
end

function thread_done()
   statement:close()
   connection:disconnect()
end
