# SPDX-License-Identifier: Apache-2.0
"""A cloud of one's own: a vCenter (SOAP, urn:vim25) on loopback, stricter than the real one.

    with fake_vsphere.Cloud() as cloud:
        node = nacre_test.Node(config=cloud.config(), env=cloud.env())

Namespaces are resolved and every prefix is an odd one; a request without a session, or with one that has ended, is refused
(NotAuthenticated); tokens of pages and the session they belong to end together; a name and an instanceUuid are taken once, the name from the
moment a clone begins and the uuid when it can be found; what is made is a task that takes a while; lists come in pages of two; an object that
does not exist refuses the whole question; elements that nobody has documented are refused. What goes wrong is set by a test: `throttle`
(each k-th call), `drop` (answers that are lost after the work), `fail` (faults in place of answers), `broken` (errors of tasks), `half` (the
task of a clone fails and the machine stays), `raw` (any bytes).

A clone of the template `agent` has no VMware Tools, but nacre: it tells its address itself. Where `guest` is set to a kernel and an initrd, it is a
machine that boots when it is switched on (fake_guest.py), and asks its host over the backdoor.
"""
import collections
import http.server
import threading
import time
import uuid
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape

import fake_cloud
import fake_guest

PAGE = 2
DATACENTER = "Test DC"
USER, PASSWORD = "node@vsphere.local", "p<&>ss"
SOAP, VIM = "http://schemas.xmlsoap.org/soap/envelope/", "urn:vim25"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
CONFIG = {"instanceUuid", "numCPUs", "numCoresPerSocket", "memoryMB", "extraConfig"}
PROPERTIES = {"config.instanceUuid", "config.extraConfig", "config.hardware.numCPU", "config.hardware.memoryMB", "runtime.powerState",
              "guest.ipAddress"}


class Fault(Exception):
    def __init__(self, name, text="", more="", status=500):
        super().__init__(text)
        self.name, self.text, self.more, self.status = name, text, more, status


def v(name):
    return f"{{{VIM}}}{name}"


def text(element, name):
    found = element.find(v(name))
    return "" if found is None else (found.text or "")


def options(element):
    found = {}
    for o in element.findall(v("extraConfig")):
        if o.get(f"{{{XSI}}}type") != "OptionValue" or not o.find(v("value")).get(f"{{{XSI}}}type", "").endswith(":string"):
            raise Fault("InvalidArgument", "extraConfig")
        found[text(o, "key")] = text(o, "value")
    return found


class Machine:
    def __init__(self, cloud, number, name, config, agent=False):
        self.agent, self.guest, self.number, self.switched_on = agent, None, number, False
        self.cloud, self.name, self.id = cloud, name, f"vm-{number}"
        self.uuid, self.extra, self.cpus, self.memory = config["uuid"], config["extra"], config["cpus"], config["memory"]
        self.address, self.gone, self.template, self.cores = f"10.2.0.{number % 250}", False, False, 2
        self.ready = time.monotonic() + cloud.clone          # until then it has a name and nothing else

    @property
    def whole(self):
        return time.monotonic() >= self.ready

    @property
    def on(self):
        """Its power-off stops it, and that is all."""
        return self.switched_on and (not self.guest or self.guest.alive)

    @on.setter
    def on(self, on):
        self.switched_on = on
        if self.guest:
            self.guest.close()
            self.guest = None
        if not on or not self.agent:
            return
        if self.cloud.guest:
            self.guest = fake_guest.Guest(self.cloud, self.number % 200, None, fake_guest.Metadata, self.host)
            self.address = self.guest.address
        else:
            self.extra["guestinfo.nacre.address"] = self.address

    def host(self, question):
        """The host of the machine, in place of vmx: settings of the guest's own."""
        verb, key, *value = question.split(" ", 2)
        if not key.startswith("guestinfo.") or verb not in ("info-get", "info-set"):
            return "0 Unknown command"
        if verb == "info-get":
            return "1 " + self.extra[key] if self.extra.get(key) else "0 No value found"
        # What the machine calls itself in its own network is reached at an address of loopback.
        self.extra[key] = self.address if value[0] == f"{fake_guest.LINK}.15" else value[0]
        return "1 "

    @property
    def tags(self):
        return {k.removeprefix("nacre."): x for k, x in self.extra.items() if k.startswith("nacre.")}

    def properties(self, names):
        every = {"runtime.powerState": ("VirtualMachinePowerState", "poweredOn" if self.on else "poweredOff")}
        if self.whole:
            every["config.instanceUuid"] = ("xsd:string", self.uuid)
            every["config.hardware.numCPU"], every["config.hardware.memoryMB"] = ("xsd:int", self.cpus), ("xsd:int", self.memory)
            if self.on and not self.agent:
                every["guest.ipAddress"] = ("xsd:string", self.address)
        parts = [f'<w:propSet><w:name>{n}</w:name><w:val q:type="{t}">{escape(str(x))}</w:val></w:propSet>'
                 for n, (t, x) in every.items() if n in names]
        if "config.extraConfig" in names and self.whole:
            each = "".join(f'<w:OptionValue q:type="w:OptionValue"><w:key>{escape(k)}</w:key><w:value q:type="xsd:string">{escape(x)}</w:value>'
                           '</w:OptionValue>' for k, x in self.extra.items())
            parts.append(f'<w:propSet><w:name>config.extraConfig</w:name><w:val q:type="w:ArrayOfOptionValue">{each}</w:val></w:propSet>')
        return "".join(parts)


class Task:
    def __init__(self, cloud, work, error=None):
        self.due, self.work, self.error, self.done = time.monotonic() + cloud.work, work, error, False

    def look(self):
        if not self.done and time.monotonic() >= self.due:
            self.done = True
            try:
                if not self.error:
                    self.work()
            except Fault as e:
                self.error = e
        return "running" if not self.done else "error" if self.error else "success"


class Cloud(fake_cloud.Cloud):
    """A vCenter with one datacenter. A context manager."""

    def __init__(self):
        self.lock = threading.RLock()
        self.machines, self.tasks, self.sessions, self.pages = collections.OrderedDict(), {}, {}, {}
        self.calls, self.n_ids = collections.Counter(), 100
        self.before, self.after = {}, {}
        self.password, self.api_type = PASSWORD, "VirtualCenter"
        self.word, self.agent, self.guest = "vsphere", "nacre/agent", None    # (kernel, initrd, words of its command line)
        self.reset()
        cloud = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                cloud.serve(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        self.listen(Handler)

    def reset(self, machines=True):
        """Nothing goes wrong any more."""
        with self.lock:
            self.work, self.clone, self.life = 0.05, 0.02, 3600
            self.throttle, self.n_calls, self.raw = 0, 0, None
            self.drop = collections.Counter()
            self.fail = collections.defaultdict(list)       # {method: [Fault, ...]}
            self.broken = collections.defaultdict(list)     # {method: [Fault, ...]}, errors of its tasks
            self.half = False
            self.expire = set()                             # methods whose next call finds its session ended
            self.before.clear()
            self.after.clear()
            self.calls.clear()
            if machines:
                for m in self.machines.values():
                    if m.guest:
                        m.guest.close()
                self.machines.clear()

    def __exit__(self, *_):
        self.reset()
        super().__exit__()

    def config(self, more="", poll="100ms", lease="24h", boot="15m", types='[ "big=8:32GiB:0.4", "small=2:2GiB:0.02" ]'):
        return (f"cloud:\n  poll: {poll}\n  boot_limit: {boot}\n  settle: 1s\n  lease: {lease}\n  vsphere:\n    endpoint: http://{self.host}/sdk\n"
                f"    datacenter: Test%20DC\n    resource_pool: c1/Resources\n    folder: nacre\n    datastore: ds1\n"
                + (f"    types: {types}\n" if types else "") + more)

    def env(self):
        return {"GOVC_USERNAME": USER, "GOVC_PASSWORD": PASSWORD}

    def alive(self):
        with self.lock:
            return [m for m in self.machines.values() if not m.gone]

    def new_id(self):
        self.n_ids += 1
        return self.n_ids

    # -- one call --

    def serve(self, request, body):
        try:
            status, answer, cookie, lost = self.answer(request, body)
        except Fault as e:
            status, cookie, lost = e.status, "", False
            detail = (f'<detail><w:{e.name}Fault xmlns:w="{VIM}" xmlns:q="{XSI}" q:type="{e.name}">{e.more}</w:{e.name}Fault></detail>'
                      if e.name else "")
            answer = (f'<env:Envelope xmlns:env="{SOAP}"><env:Body><env:Fault><faultcode>ServerFaultCode</faultcode>'
                      f'<faultstring>{escape(e.text)}</faultstring>{detail}</env:Fault></env:Body></env:Envelope>')
        if lost:
            request.close_connection = True
            request.connection.close()
            return
        data = answer.encode() if self.raw is None else self.raw
        request.send_response(status)
        request.send_header("Content-Type", "text/xml; charset=utf-8")
        if cookie:
            request.send_header("Set-Cookie", "other=1")
            request.send_header("Set-Cookie", f'vmware_soap_session="{cookie}"; Path=/; HttpOnly')
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def answer(self, request, body):
        if request.path != "/sdk" or request.headers.get("SOAPAction") != '"urn:vim25/6.5"':
            raise Fault("", "no such path or action", status=404)
        root = ET.fromstring(body)
        (call,) = root.find(f"{{{SOAP}}}Body")
        if root.tag != f"{{{SOAP}}}Envelope" or not call.tag.startswith(f"{{{VIM}}}"):
            raise Fault("InvalidRequest", "namespace")
        method = call.tag.partition("}")[2]
        this = call.find(v("_this"))
        cookie = request.headers.get("Cookie", "").removeprefix("vmware_soap_session=").strip('"')
        hook = self.before.get(method)
        if hook:
            hook(self)
        with self.lock:
            self.n_calls += 1
            self.calls[method] += 1
            if method in self.expire:
                self.expire.discard(method)
                self.sessions.clear()
                self.pages.clear()
            if method not in ("RetrieveServiceContent", "Login") and self.sessions.get(cookie, 0) < time.monotonic():
                raise Fault("NotAuthenticated", "The session is not authenticated.")
            if method not in ("RetrieveServiceContent", "Login"):
                self.sessions[cookie] = time.monotonic() + self.life
            if self.throttle and self.n_calls % self.throttle == 0:
                raise Fault("", "busy", status=503)
            if self.fail[method]:
                raise self.fail[method].pop(0)
            do = getattr(self, "do_" + method, None)
            if not do:
                raise Fault("InvalidRequest", method)
            said = do(call, this.get("type"), this.text, cookie)
            cookie = said if method == "Login" else ""
            said = "" if method == "Login" else said
            lost = self.drop[method] > 0
            self.drop[method] -= lost
        hook = self.after.get(method)
        if hook:
            hook(self)
        return 200, (f'<env:Envelope xmlns:env="{SOAP}"><env:Body><w:{method}Response xmlns:w="{VIM}" xmlns:q="{XSI}" '
                     f'xmlns:xsd="http://www.w3.org/2001/XMLSchema">{said}</w:{method}Response></env:Body></env:Envelope>'), cookie, lost

    def do_RetrieveServiceContent(self, call, kind, this, _):
        if (kind, this) != ("ServiceInstance", "ServiceInstance"):
            raise Fault("ManagedObjectNotFound", this)
        return (f'<w:returnval><w:rootFolder type="Folder">group-d1</w:rootFolder><w:propertyCollector type="PropertyCollector">pc-1'
                f'</w:propertyCollector><w:about><w:apiType>{self.api_type}</w:apiType></w:about><w:sessionManager type="SessionManager">sm-1'
                f'</w:sessionManager><w:searchIndex type="SearchIndex">si-1</w:searchIndex></w:returnval>')

    def do_Login(self, call, kind, this, _):
        if this != "sm-1" or (text(call, "userName"), text(call, "password")) != (USER, self.password):
            raise Fault("InvalidLogin", "Cannot complete login due to an incorrect user name or password.")
        cookie = uuid.uuid4().hex
        self.sessions[cookie] = time.monotonic() + self.life
        return cookie

    def do_FindByInventoryPath(self, call, kind, this, _):
        paths = {f"/{DATACENTER}/vm": ("Folder", "group-v3"), f"/{DATACENTER}/vm/nacre": ("Folder", "group-v4"),
                 f"/{DATACENTER}/vm/debian": ("VirtualMachine", "vm-1"), f"/{DATACENTER}/vm/{self.agent}": ("VirtualMachine", "vm-2"), f"/{DATACENTER}/host/c1/Resources": ("ResourcePool", "resgroup-8"),
                 f"/{DATACENTER}/datastore/ds1": ("Datastore", "datastore-9")}
        found = paths.get(text(call, "inventoryPath"))
        return f'<w:returnval type="{found[0]}">{found[1]}</w:returnval>' if found else ""

    def do_FindByUuid(self, call, kind, this, _):
        if this != "si-1" or (text(call, "vmSearch"), text(call, "instanceUuid")) != ("true", "true"):
            raise Fault("InvalidArgument", "FindByUuid")
        found = next((m for m in self.alive() if m.whole and m.uuid == text(call, "uuid")), None)
        return f'<w:returnval type="VirtualMachine">{found.id}</w:returnval>' if found else ""

    def find(self, this):
        m = self.machines.get(this)
        if not m or m.gone:
            raise Fault("ManagedObjectNotFound", f"The object 'vim.VirtualMachine:{this}' has already been deleted or has not been completely "
                        "created")
        return m

    def begin(self, method, work):
        name = f"task-{self.new_id()}"
        self.tasks[name] = Task(self, work, self.broken[method].pop(0) if self.broken[method] else None)
        return f'<w:returnval type="Task">{name}</w:returnval>'

    def do_CloneVM_Task(self, call, kind, this, _):
        spec, name = call.find(v("spec")), text(call, "name")
        config, location = spec.find(v("config")), spec.find(v("location"))
        if this not in ("vm-1", "vm-2") or text(call, "folder") != "group-v4" or text(location, "pool") != "resgroup-8" or \
                text(location, "datastore") != "datastore-9" or text(spec, "template") != "false" or text(spec, "powerOn") != "false":
            raise Fault("InvalidArgument", "CloneVM_Task")
        if {e.tag.partition("}")[2] for e in config} - CONFIG:
            raise Fault("InvalidRequest", "an element of the spec")
        wanted = {"uuid": text(config, "instanceUuid"), "extra": options(config), "cpus": int(text(config, "numCPUs") or 1),
                  "memory": int(text(config, "memoryMB") or 512)}
        if any(m.name == name for m in self.alive()):
            raise Fault("DuplicateName", f"The name '{name}' already exists.")
        # vCenter gives a machine another uuid where that is taken: here nobody ever means that.
        if any(m.uuid == wanted["uuid"] for m in self.alive()):
            raise Fault("InvalidArgument", "instanceUuid")
        error = self.broken["CloneVM_Task"][0] if self.broken["CloneVM_Task"] else None
        if not error or self.half:
            m = Machine(self, self.new_id(), name, wanted, this == "vm-2")
            self.machines[m.id] = m
        return self.begin("CloneVM_Task", lambda: None)

    def power(self, m, on):
        if m.on == on:
            raise Fault("InvalidPowerState", "The attempted operation cannot be performed in the current state "
                        f"({'Powered on' if on else 'Powered off'}).")
        m.on = on

    def do_PowerOnVM_Task(self, call, kind, this, _):
        m = self.find(this)
        if not m.whole:
            raise Fault("TaskInProgress", "Another task is already in progress.")
        return self.begin("PowerOnVM_Task", lambda: self.power(m, True))

    def do_PowerOffVM_Task(self, call, kind, this, _):
        m = self.find(this)
        return self.begin("PowerOffVM_Task", lambda: self.power(m, False))

    def do_Destroy_Task(self, call, kind, this, _):
        m = self.find(this)
        if m.on:
            raise Fault("InvalidPowerState", "The attempted operation cannot be performed in the current state (Powered on).")

        def destroy():
            m.gone = True
        return self.begin("Destroy_Task", destroy)

    def do_ReconfigVM_Task(self, call, kind, this, _):
        m, spec = self.find(this), call.find(v("spec"))
        if {e.tag.partition("}")[2] for e in spec} != {"extraConfig"}:
            raise Fault("InvalidRequest", "ReconfigVM_Task")
        return self.begin("ReconfigVM_Task", lambda: m.extra.update(options(spec)))

    # -- properties --

    def object(self, kind, name, names):
        if kind == "Task":
            task = self.tasks.get(name)
            if not task or names != {"info.state", "info.error"}:
                raise Fault("ManagedObjectNotFound", name)
            state = task.look()
            error = "" if state != "error" else (
                f'<w:propSet><w:name>info.error</w:name><w:val q:type="w:LocalizedMethodFault"><w:fault q:type="w:{task.error.name}">'
                f'{task.error.more}</w:fault><w:localizedMessage>{escape(task.error.text)}</w:localizedMessage></w:val></w:propSet>')
            return (f'<w:objects><w:obj type="Task">{name}</w:obj><w:propSet><w:name>info.state</w:name><w:val q:type="w:TaskInfoState">{state}'
                    f'</w:val></w:propSet>{error}</w:objects>')
        if names - PROPERTIES:
            raise Fault("InvalidProperty", str(names))
        return f'<w:objects><w:obj type="VirtualMachine">{name}</w:obj>{self.find(name).properties(names)}</w:objects>'

    def do_RetrievePropertiesEx(self, call, kind, this, cookie):
        (spec,) = call.findall(v("specSet"))
        (wanted,) = spec.findall(v("propSet"))
        names = {p.text for p in wanted.findall(v("pathSet"))}
        if this != "pc-1" or not 0 < int(text(call.find(v("options")), "maxObjects")) <= 1000:
            raise Fault("InvalidArgument", "RetrievePropertiesEx")
        found = []
        for o in spec.findall(v("objectSet")):
            obj = o.find(v("obj"))
            if obj.get("type") != "Folder":
                found.append((obj.get("type"), obj.text))
                continue
            traversals = {(t.get(f"{{{XSI}}}type"), text(t, "type"), text(t, "path")) for t in o.findall(v("selectSet"))}
            if obj.text != "group-v3" or text(o, "skip") != "true" or traversals != {
                    ("TraversalSpec", "Folder", "childEntity"), ("TraversalSpec", "VirtualApp", "vm")}:
                raise Fault("InvalidArgument", "objectSet")
            found += [("VirtualMachine", m.id) for m in self.alive()]
        return self.page(found, names, cookie)

    def page(self, found, names, cookie):
        shown = "".join(self.object(kind, name, names) for kind, name in found[:PAGE])
        token = ""
        if len(found) > PAGE:
            token = str(self.new_id())
            self.pages[token] = (cookie, found[PAGE:], names)
            token = f"<w:token>{token}</w:token>"
        return f"<w:returnval>{token}{shown}</w:returnval>" if shown else ""

    def do_ContinueRetrievePropertiesEx(self, call, kind, this, cookie):
        owner, found, names = self.pages.pop(text(call, "token"), (None, None, None))
        if owner != cookie:
            raise Fault("InvalidArgument", "A specified parameter was not correct: token")
        found = [(k, n) for k, n in found if k != "VirtualMachine" or (n in self.machines and not self.machines[n].gone)]
        return self.page(found, names, cookie)
