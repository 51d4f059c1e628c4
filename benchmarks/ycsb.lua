-- YCSB's row by sysbench: reads of all fields and updates of one, of the rows that dyno loaded with ordered keys.

sysbench.cmdline.options = {
   records = {"how many rows there are", 10000},
   updates = {"how many of a hundred operations write", 0},
}

local FIELDS = 10
local LENGTH = 100

function thread_init()
   connection = sysbench.sql.driver():connect()
   read = connection:prepare("SELECT field0,field1,field2,field3,field4,field5,field6,field7,field8,field9 FROM usertable WHERE ycsb_key = ?")
   read_key = read:bind_create(sysbench.sql.type.CHAR, 64)
   read:bind_param(read_key)
   updates, values, keys = {}, {}, {}
   for field = 0, FIELDS - 1 do
      updates[field] = connection:prepare("UPDATE usertable SET field" .. field .. "=? WHERE ycsb_key=?")
      values[field] = updates[field]:bind_create(sysbench.sql.type.CHAR, LENGTH)
      keys[field] = updates[field]:bind_create(sysbench.sql.type.CHAR, 64)
      updates[field]:bind_param(values[field], keys[field])
   end
end

function event()
   -- Evenly: this release knows no Zipfian law. It makes the event cheaper than the driver's, not dearer.
   local key = string.format("user%020d", sysbench.rand.uniform(0, sysbench.opt.records - 1))
   if sysbench.opt.updates > 0 and sysbench.rand.uniform(1, 100) <= sysbench.opt.updates then
      local field = sysbench.rand.uniform(0, FIELDS - 1)
      values[field]:set(sysbench.rand.string(string.rep("@", LENGTH)))
      keys[field]:set(key)
      -- Of a write it tells the script nothing; one that met no row it counts as `other`.
      updates[field]:execute()
   else
      read_key:set(key)
      local rows = read:execute().nrows
      if rows ~= 1 then
         error(rows .. " rows of " .. key)
      end
   end
end

function thread_done()
   read:close()
   for field = 0, FIELDS - 1 do
      updates[field]:close()
   end
   connection:disconnect()
end
