-- What lua-rrd answers. Run with librrd and with kymo's, the output must be the same.
local rrd = require 'rrd'
local start = 1700000000

local function shown(value)
  if type(value) ~= 'table' then return tostring(value) end
  local keys, parts = {}, {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    if not tostring(key):find('cur_row') then parts[#parts + 1] = tostring(key) .. '=' .. shown(value[key]) end
  end
  return '{' .. table.concat(parts, ' ') .. '}'
end

local function tell(what, call, ...)
  local results = { pcall(call, ...) }
  for place = 1, #results do results[place] = shown(results[place]) end
  print(what, table.concat(results, ' '))
end

tell('create', rrd.create, 'l.rrd', '--start', tostring(start), '--step', '300', 'DS:a:GAUGE:600:U:U', 'RRA:MAX:0.5:1:50')
for step = 1, 20 do rrd.update('l.rrd', string.format('%d:%d', start + 300 * step, step * 2)) end
tell('past', rrd.update, 'l.rrd', '5:5')
tell('updatev', rrd.updatev, 'l.rrd', string.format('%d:%d', start + 6300, 1))
tell('fetch', rrd.fetch, 'l.rrd', 'MAX', '--start', tostring(start), '--end', tostring(start + 3600))
tell('info', rrd.info, 'l.rrd')
tell('first', rrd.first, 'l.rrd')
tell('last', rrd.last, 'l.rrd')
tell('tune', rrd.tune, 'l.rrd', '-h', 'a:900')
tell('dump', rrd.dump, 'l.rrd', 'l.xml')
tell('restore', rrd.restore, 'l.xml', 'l2.rrd')
tell('graph', rrd.graph, 'l.png', '-s', tostring(start), '-e', tostring(start + 3600), 'DEF:x=l.rrd:a:MAX', 'LINE:x#ff0000', 'PRINT:x:MAX:%.1lf')
tell('no file', rrd.fetch, 'none.rrd', 'MAX')

-- The state stays open: to close it unloads the library, whose threads may still run, which ends one run of thirty
-- with a fault, with Debian's library too.
os.exit(true)
